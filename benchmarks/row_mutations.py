"""Files of rows with wounds: a seeded mutator for svmlight and CSV, plain and compressed."""

import random

SEPARATORS = (b"\0", b"\xff\xfe", b"\n", b":", b",", b'"', b"#", b" ", b"\r", b"-", b"e999", b"\t", b";", b"_", b"\x1a")
NUMBERS = (
    *(b"nan", b"inf", b"-1:1 ", b"99999999999:1 ", b"qid:3 ", b"1,2 ", b"0x10", b"1e308", b"-1e308", b"1e-320"),
    *(b"2147483648:1 ", b"9223372036854775808:1 ", b"0:1 0:1 ", "\u0663".encode(), b"''", b'"1\n2"'),
)

# How often something is repeated; the last ones, which take the time of hundreds of files, are rare.
LENGTHS = (*(3, 300) * 10, *(5000,) * 5, 120_000, 1_100_000)
MANY_ROWS, LONGEST = 4000, 2**23
# What is done to all rows at once makes so many cells at most.
MOST_CELLS = 2**20


def mutant(data: bytes, draw: random.Random) -> bytes:
    """Return a small valid file with a few wounds."""
    content = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        wound = draw.choice(WOUNDS)
        content = wound(content, draw.randrange(len(content) or 1), draw)[: 2 * LONGEST]
    return bytes(content)


def flip_a_bit(content: bytearray, at: int, draw: random.Random) -> bytearray:
    if content:
        content[at] ^= 1 << draw.randrange(8)
    return content


def cut_off(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at]


def put_a_separator(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + draw.choice(SEPARATORS) + content[at:]


def put_a_number(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + draw.choice(NUMBERS) + content[at:]


def put_digits(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + str(draw.randrange(10 ** draw.randrange(1, 25))).encode() + content[at:]


def put_noise(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + draw.randbytes(draw.randrange(1, 30)) + content[at:]


def take_out(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + content[at + draw.randrange(1, 40) :]


def repeat_a_part(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + content[at : at + draw.randrange(1, 200)] + content[at:]


def repeat_a_byte(content: bytearray, at: int, draw: random.Random) -> bytearray:
    return content[:at] + draw.choice((1, 300, 200_000)) * content[at : at + 1] + content[at:]


def shuffle_lines(content: bytearray, at: int, draw: random.Random) -> bytearray:
    lines = content.split(b"\n")
    draw.shuffle(lines)
    return bytearray(b"\n".join(lines[: draw.randrange(len(lines) + 1)]))


def lengthen_a_label(content: bytearray, at: int, draw: random.Random) -> bytearray:
    """Give one row a long label, and sometimes many rows beside it, whose labels take the same room in an array."""
    lines = content.split(b"\n")
    number = content.count(b"\n", 0, at)
    line = lines[number]
    lines[number] = min(draw.choice(LENGTHS), 120_000) * line[:1] + line
    if draw.random() < 0.1 and len(content) < 10_000:
        lines += (lines[1:-1] * (MANY_ROWS // max(1, len(lines))))[:MANY_ROWS]
    return bytearray(b"\n".join(lines))


def widen_lines(content: bytearray, at: int, draw: random.Random) -> bytearray:
    """Give one row more columns, or all of them."""
    lines = content.split(b"\n")
    number, n_columns = content.count(b"\n", 0, at), draw.choice(LENGTHS)
    more = b"".join(b" %d:1" % j for j in range(4, 4 + n_columns)) if b":" in content else b",1" * n_columns
    is_everywhere = n_columns * len(lines) < MOST_CELLS and draw.random() < 0.5
    for i in range(len(lines) - 1) if is_everywhere else [number]:
        lines[i] = lines[i] + more
    return bytearray(b"\n".join(lines))


def repeat_a_column(content: bytearray, at: int, draw: random.Random) -> bytearray:
    """Let a column stand in all rows, or in one, many times, under the same name or number."""
    separator = b" " if b":" in content else b","
    lines = [line.split(separator) for line in content.split(b"\n")]
    number, n_times = content.count(b"\n", 0, at), draw.choice(LENGTHS)
    column = draw.randrange(len(lines[number]))
    is_everywhere = n_times * len(lines) < MOST_CELLS and draw.random() < 0.5
    for i in range(len(lines)) if is_everywhere else [number]:
        cells = lines[i][column : column + 1]
        n_most = LONGEST // max(1, len(content) if is_everywhere else len(b"".join(cells)))
        lines[i][column : column + 1] = cells * min(n_times, n_most)
    return bytearray(b"\n".join(separator.join(cells) for cells in lines))


def go_on_in_quotes(content: bytearray, at: int, draw: random.Random) -> bytearray:
    """Let a row go on over the ends of lines: a cell in quotes may hold them."""
    lines = content.split(b"\n")
    number, n_times = content.count(b"\n", 0, at), draw.choice(LENGTHS)
    part = b',"\n"' + b",1" * draw.choice((0, 1, 1000))
    lines[number] += part * min(n_times, MOST_CELLS // len(part))
    return bytearray(b"\n".join(lines))


WOUNDS = (
    flip_a_bit,
    cut_off,
    put_a_separator,
    put_a_number,
    put_digits,
    put_noise,
    take_out,
    repeat_a_part,
    repeat_a_byte,
    shuffle_lines,
    lengthen_a_label,
    widen_lines,
    repeat_a_column,
    go_on_in_quotes,
)
