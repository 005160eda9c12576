"""Images fit for a model: checked, scaled into limits, or a reason why not. Memory is bounded before decoding.

Knows bytes and pixels; nothing of paths.
"""

from __future__ import annotations

import base64
import io
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

#: What is decoded at most; four bytes a pixel. A larger picture is a decompression bomb or needs other tools.
MOST_PIXELS: Final = 40_000_000
#: What is handed to a decoder at most, in bytes.
MOST_BYTES: Final = 64 * 1024 * 1024

_SHRINK: Final = (1.0, 0.75, 0.5, 0.35, 0.25)
_QUALITY: Final = (85, 65, 45)
_LOSSLESS: Final = frozenset({"image/png", "image/gif"})
_WEBP_HEAD: Final = 30

#: Everything that the decoders raise for damaged files.
_DAMAGED: Final = (OSError, SyntaxError, ValueError, ArithmeticError, LookupError, EOFError, TypeError, MemoryError)
_DAMAGED_TOO: Final = (struct.error, zlib.error)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image ready to send: `data` is standard Base64; `original` is width and height of the file's image."""

    data: str
    mime_type: str
    width: int
    height: int
    original: tuple[int, int]


@dataclass(frozen=True, slots=True)
class NotShown:
    """Why there is no picture, as the end of a sentence. `damaged` when no decoder knows the bytes."""

    reason: str
    damaged: bool = False


def load_picture(file: BinaryIO, size: int, mime_type: str, *, pixels: int, data_bytes: int) -> Picture | NotShown:
    """The picture in a file of `size` bytes, at most `pixels` on a side and `data_bytes` of Base64.

    A file that fits is passed on byte for byte, once it decodes. `mime_type` is the type that its signature says.
    """
    # Decoders are loaded when the first image is read: most servers never read one.
    from PIL.Image import DecompressionBombError

    if size > MOST_BYTES:
        return NotShown(f"it has {size:,} bytes, and at most {MOST_BYTES:,} are decoded")
    try:
        return _load(file, size, mime_type, pixels, data_bytes)
    except DecompressionBombError:
        return NotShown("it has too many pixels to decode")
    except (*_DAMAGED, *_DAMAGED_TOO):
        return NotShown("it is damaged", damaged=True)


def _load(file: BinaryIO, size: int, mime_type: str, pixels: int, data_bytes: int) -> Picture | NotShown:
    """The picture; raises what the decoders raise."""
    if mime_type == "image/webp" and _area(_webp_size(file)) > MOST_PIXELS:
        return NotShown("it has too many pixels to decode")
    image = _open(file, mime_type)
    original = image.size
    if max(original) > pixels:
        # JPEG can be decoded at a fraction of its size.
        image.draft("RGB", (pixels, pixels))
    if _area(image.size) > MOST_PIXELS:
        return NotShown(f"it has {original[0]:,} x {original[1]:,} pixels, which is too many to decode")
    image.load()
    if max(original) <= pixels and _base64_size(size) <= data_bytes:
        file.seek(0)
        return Picture(_base64(file.read(size)), mime_type, *original, original)
    return _scaled(image, mime_type, original, pixels, data_bytes)


def _open(file: BinaryIO, mime_type: str) -> ImageFile:
    """Open with the one decoder for that type, without decoding pixels."""
    from PIL.GifImagePlugin import GifImageFile
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile
    from PIL.WebPImagePlugin import WebPImageFile

    decoders: dict[str, type[ImageFile]] = {
        "image/png": PngImageFile,
        "image/jpeg": JpegImageFile,
        "image/gif": GifImageFile,
        "image/webp": WebPImageFile,
    }
    file.seek(0)
    return decoders[mime_type](file)


def _webp_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height of a WebP file, before its decoder makes room for them. Raises ValueError or struct.error."""
    file.seek(0)
    head = file.read(_WEBP_HEAD)
    match head[12:16]:
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            raise ValueError("no WebP image in the file")


def _scaled(
    image: Image, mime_type: str, original: tuple[int, int], pixels: int, data_bytes: int
) -> Picture | NotShown:
    """The largest copy that fits, as PNG if the file is lossless and that is small enough, else as JPEG."""
    from PIL import ImageOps
    from PIL.Image import Resampling

    upright = ImageOps.exif_transpose(_plain(image))
    upright.thumbnail((pixels, pixels), Resampling.LANCZOS)
    for factor in _SHRINK:
        size = (max(1, int(upright.width * factor)), max(1, int(upright.height * factor)))
        copy = upright if factor == _SHRINK[0] else upright.resize(size, Resampling.LANCZOS)
        attempts = [("PNG", 0)] if mime_type in _LOSSLESS and factor == _SHRINK[0] else []
        for kind, quality in [*attempts, *(("JPEG", quality) for quality in _QUALITY)]:
            encoded = _encoded(copy, kind, quality)
            if _base64_size(len(encoded)) <= data_bytes:
                return Picture(_base64(encoded), f"image/{kind.lower()}", *copy.size, original)
    return NotShown("it is too large to send even when it is scaled down")


def _plain(image: Image) -> Image:
    """The image in a mode that scales and encodes well: grey, RGB or RGBA."""
    if image.mode.startswith("I"):
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in {"L", "RGB", "RGBA"} and "transparency" not in image.info:
        return image
    transparent = image.has_transparency_data
    return image.convert("RGBA" if transparent else "RGB")


def _encoded(image: Image, kind: str, quality: int) -> bytes:
    """The image as a file; JPEG gets a white ground where the image is transparent."""
    from PIL.Image import new

    out = io.BytesIO()
    if kind == "PNG":
        image.save(out, "PNG")
        return out.getvalue()
    if image.mode == "RGBA":
        ground = new("RGB", image.size, "white")
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def _area(size: tuple[int, int]) -> int:
    """Pixels in an image."""
    return size[0] * size[1]


def _base64_size(size: int) -> int:
    """How long so many bytes are in Base64."""
    return (size + 2) // 3 * 4


def _base64(content: bytes) -> str:
    """Standard Base64."""
    return base64.b64encode(content).decode("ascii")
