"""Mutants of a file: its content with seeded damage, as disks, networks, editors and people who mean harm leave it."""

import random
from collections.abc import Callable

DEPTH = 20_000  # of what is nested
HUGE = (b"-1", b"0", b"1e308", b"nan", b"4294967295", b"1000000000000", b"9" * 5000)
OPENINGS = (
    b"[",
    b"{",
    b'{"a":',
    b"<a>",
    b"<tu>",
    b"(",
    b'"',
    b"'",
    b"\\",
    b"&#0;",
    b"\xff",
    b"\0",
    b"\r",
    b"\n",
    b"\t",
    b",",
)

Damage = Callable[[bytes, random.Random], bytes]


def mutant(content: bytes, seed: str) -> bytes:
    """Return a content that is damaged in one to four ways."""
    draw = random.Random(seed)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(DAMAGE)(content, draw)
    return content


def flip_bits(content: bytes, draw: random.Random) -> bytes:
    """Flip a bit here and there."""
    damaged = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8, 64)) if content else 0):
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, draw: random.Random) -> bytes:
    """Cut off the end."""
    return content[: draw.randrange(len(content) + 1)]


def insert_bytes(content: bytes, draw: random.Random) -> bytes:
    """Insert random bytes."""
    place = draw.randrange(len(content) + 1)
    return content[:place] + draw.randbytes(draw.choice((1, 2, 16, 300))) + content[place:]


def delete_span(content: bytes, draw: random.Random) -> bytes:
    """Delete a stretch of bytes."""
    place = draw.randrange(len(content) + 1)
    return content[:place] + content[place + draw.choice((1, 2, 16, 300)) :]


def repeat_span(content: bytes, draw: random.Random) -> bytes:
    """Repeat a stretch of bytes, a few or many times."""
    place = draw.randrange(len(content) + 1)
    end = place + draw.choice((1, 8, 64))
    return content[:place] + content[place:end] * draw.choice((2, 3, 1000)) + content[end:]


def duplicate_line(content: bytes, draw: random.Random) -> bytes:
    """Write a line again, elsewhere."""
    lines = content.split(b"\n")
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
    return b"\n".join(lines)


def delete_line(content: bytes, draw: random.Random) -> bytes:
    """Delete a line."""
    lines = content.split(b"\n")
    del lines[draw.randrange(len(lines))]
    return b"\n".join(lines)


def swap_lines(content: bytes, draw: random.Random) -> bytes:
    """Let two lines change their places."""
    lines = content.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def encode_otherwise(content: bytes, draw: random.Random) -> bytes:
    """Write text in another encoding, or with a mark of its encoding in front."""
    encoding = draw.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7", "cp500"))
    return content.decode("latin-1").encode(encoding, errors="replace")


def nest(content: bytes, draw: random.Random) -> bytes:
    """Open something, many times over."""
    place = draw.randrange(len(content) + 1)
    return content[:place] + draw.choice(OPENINGS) * draw.choice((1, 100, DEPTH)) + content[place:]


def claim(content: bytes, draw: random.Random) -> bytes:
    """Let a number say something else."""
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    if not places:
        return content
    place = draw.choice(places)
    return content[:place] + draw.choice(HUGE) + content[place + 1 :]


def zero_span(content: bytes, draw: random.Random) -> bytes:
    """Write zeros over a stretch, as a disk that lost a block does."""
    place = draw.randrange(len(content) + 1)
    end = min(len(content), place + draw.choice((1, 4, 512)))
    return content[:place] + bytes(end - place) + content[end:]


DAMAGE: tuple[Damage, ...] = (
    flip_bits,
    truncate,
    insert_bytes,
    delete_span,
    repeat_span,
    duplicate_line,
    delete_line,
    swap_lines,
    encode_otherwise,
    nest,
    claim,
    zero_span,
)
