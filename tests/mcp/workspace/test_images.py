"""Images: passed on when they fit, scaled when they do not, never over a limit, and never a bomb."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib

import PIL.Image
import pytest

from mcp.workspace.filetypes import image_type
from mcp.workspace.images import MOST_BYTES, NotShown, Picture, load_picture

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def encoded(image: PIL.Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def load(content: bytes, *, pixels: int = 2000, data_bytes: int = 4_500_000) -> Picture | NotShown:
    mime_type = image_type(content[:64])
    assert mime_type is not None
    return load_picture(io.BytesIO(content), len(content), mime_type, pixels=pixels, data_bytes=data_bytes)


def decoded(picture: Picture | NotShown) -> PIL.Image.Image:
    assert isinstance(picture, Picture)
    image = PIL.Image.open(io.BytesIO(base64.b64decode(picture.data)))
    image.load()
    assert image.size == (picture.width, picture.height)
    assert PIL.Image.MIME[image.format or ""] == picture.mime_type
    return image


@pytest.mark.parametrize("kind", FORMATS)
def test_an_image_that_fits_is_passed_on_byte_for_byte(kind: str) -> None:
    content = encoded(PIL.Image.new("RGB", (30, 20), "red"), kind)
    assert load(content) == Picture(base64.b64encode(content).decode(), FORMATS[kind], 30, 20, (30, 20))


@pytest.mark.parametrize("kind", FORMATS)
def test_an_image_with_too_many_pixels_is_scaled_in_its_proportions(kind: str) -> None:
    image = decoded(load(encoded(PIL.Image.new("RGB", (400, 100), "red"), kind), pixels=200))
    assert image.size == (200, 50)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK"])
def test_every_mode_can_be_scaled(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    image = decoded(load(encoded(PIL.Image.new(mode, (400, 100)), kind), pixels=200))
    assert image.size == (200, 50)


def test_sixteen_bits_keep_their_brightness() -> None:
    image = decoded(load(encoded(PIL.Image.new("I;16", (400, 100), 0x8000), "PNG"), pixels=200))
    assert image.convert("L").getpixel((0, 0)) == 0x80


def test_an_image_with_too_many_bytes_is_encoded_smaller() -> None:
    content = encoded(PIL.Image.frombytes("RGB", (200, 200), random.Random(1).randbytes(120_000)), "PNG")
    picture = load(content, data_bytes=40_000)
    assert len(decoded(picture).tobytes()) > 0
    assert isinstance(picture, Picture)
    assert len(picture.data) <= 40_000


def test_transparency_survives_scaling_and_becomes_white_in_jpeg() -> None:
    image = PIL.Image.frombytes("RGBA", (100, 100), random.Random(1).randbytes(40_000))
    image.putalpha(0)
    scaled = decoded(load(encoded(image, "PNG"), pixels=50))
    assert scaled.mode == "RGBA"
    small = decoded(load(encoded(image, "PNG"), data_bytes=5_000))
    assert small.getpixel((0, 0)) == (255, 255, 255)


def test_a_scaled_photo_is_upright() -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    content = encoded(PIL.Image.new("RGB", (400, 100), "red"), "JPEG", exif=exif)
    assert decoded(load(content, pixels=200)).size == (50, 200)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png_bomb() -> bytes:
    """60,000 x 60,000 black pixels."""
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", zlib.compress(bytes(1000))) + _chunk(b"IEND", b"")


def _webp_bomb() -> bytes:
    """A canvas of 16,384 x 16,384 pixels, for which a decoder makes room at once."""
    canvas = b"VP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\x3f\0\xff\x3f\0"
    return b"RIFF" + struct.pack("<I", len(canvas) + 4) + b"WEBP" + canvas


def _gif_bomb() -> bytes:
    """A small screen whose first frame has 65,535 x 65,535 pixels."""
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 65_535, 65_535, 0) + b"\x08\x01\x00\x00\x3b"
    return b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + frame


@pytest.mark.parametrize("bomb", [_png_bomb, _webp_bomb, _gif_bomb])
def test_a_bomb_is_not_decoded(bomb: object) -> None:
    assert callable(bomb)
    shown = load(bomb())
    assert isinstance(shown, NotShown)
    assert "too many" in shown.reason


def test_a_file_too_large_for_a_decoder_is_not_read() -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("was read")

    shown = load_picture(Unread(), MOST_BYTES + 1, "image/png", pixels=1, data_bytes=1)
    assert shown == NotShown("it has 67,108,865 bytes, and at most 67,108,864 are decoded")


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_of_every_kind_are_told(kind: str) -> None:
    """Wherever the file ends, and whichever byte is wrong, there is a picture or a reason, never an exception."""
    content = encoded(PIL.Image.frombytes("RGB", (40, 40), random.Random(1).randbytes(4800)), kind)
    damaged = [content[:end] for end in range(16, len(content), max(1, len(content) // 40))]
    rng = random.Random(2)
    for _ in range(60):
        position = rng.randrange(12, len(content))
        damaged.append(content[:position] + rng.randbytes(1) + content[position + 1 :])
    outcomes = [load(each, pixels=20) for each in damaged]
    assert {type(outcome) for outcome in outcomes} == {Picture, NotShown} or kind == "PNG"
    assert any(isinstance(outcome, NotShown) and outcome.damaged for outcome in outcomes)
