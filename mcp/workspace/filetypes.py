"""What a file is, told by its first bytes and never by its name. Pure."""

from __future__ import annotations

import re
from typing import Final

#: Image types that models can look at, by their signature.
_IMAGES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)

#: Signatures of other files that are not text even where their first bytes hold no NUL, and what to call them.
_BINARIES: Final = (
    (b"\x7fELF", "ELF executable"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O binary"),
    (b"\xcf\xfa\xed\xfe", "Mach-O binary"),
    (b"\x00asm", "WebAssembly module"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"\x00\x00\x01\x00", "icon"),
    (b"\xff\xfe\x00\x00", "UTF-32 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
#: Short or wordy signatures count only in a file that holds a NUL, because a text may begin with them.
_WORDY: Final = frozenset({b"BZh", b"ID3", b"OggS", b"fLaC", b"wOFF", b"wOF2"})
_CERTAIN: Final = tuple(magic for magic, _ in _BINARIES if magic not in _WORDY)
_NAMED_BY_MAGIC_AND_NUL: Final = ((b"BM", "BMP image"), (b"RIFF", "RIFF media"), (b"MZ", "Windows executable"))

#: How far into a file a NUL makes it binary (as git looks).
SNIFFED: Final = 8000


def image_type(head: bytes) -> str | None:
    """The MIME type of an image that models can look at, from the first bytes of a file."""
    return next((mime_type for signature, mime_type in _IMAGES if signature.match(head)), None)


def binary_type(head: bytes) -> str | None:
    """What a file is whose signature alone says that it is not text."""
    if not head.startswith(_CERTAIN):
        return None
    return next(name for magic, name in _BINARIES if magic not in _WORDY and head.startswith(magic))


def nul_type(head: bytes) -> str:
    """What to call a file that is binary because it holds NUL bytes."""
    named = (*_BINARIES, *_NAMED_BY_MAGIC_AND_NUL)
    return next((name for magic, name in named if head.startswith(magic)), "binary data")
