"""Makes and checks the coefficients of src/kernels/normal_tail.hpp, tanh_pieces.hpp and gelu_pieces.hpp. Needs mpmath.

    python3 scripts/fit_pieces.py            prints the structs NormalTail, TanhPieces and GeluPieces, for clang-format
    python3 scripts/fit_pieces.py --check    compares the polynomials that stand in the headers with the functions;
                                             fails if they are not within what the comments say
    python3 scripts/fit_pieces.py --check --rounded    shows the same with every step rounded, as in the kernels;
                                                       the comments do not speak of this

Q being the normal distribution beyond a, a Q(a) = t(a) e^(-a^2 / 2) and its derivative is w(a) e^(-a^2 / 2):

    t(a) = a Q(a) e^(a^2 / 2),    w(a) = Q(a) e^(a^2 / 2) - a / sqrt(2 pi)

a Q(a), t and tanh are approximated relative to themselves, because gelu is -a Q(a) for negative numbers, and w relative
to itself or to 0.1, because it passes 0. Each piece has the polynomial of least error (Remez); its coefficients are
rounded one after the other, those of higher powers making up for it. The pieces of a Q(a) are of one length in
a (a + 6), shorter where it falls faster; their middles are moved to where a Q(a) is nearly a float.
"""

import re
import sys
from collections import namedtuple
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 50
KERNELS = Path(__file__).resolve().parent.parent / "src/kernels"
POINTS = 300  # for each piece, denser towards its ends

# A struct of a header that holds what functions are made of, on `pieces`, which the constants of that name describe.
Format = namedtuple("Format", "header struct functions type bits suffix terms pieces constants")

Piece = namedtuple("Piece", "low middle high number")

# Errors are relative to the value or to `least`; around 0, small numbers need the coefficients `leading` exactly.
Function = namedtuple("Function", "table name value least leading remark")


def over_bell(a):
    """Q(a) e^(a^2 / 2)"""
    return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) / 2


NORMAL = [Function("tail", "t", lambda a: a * over_bell(a), mpf(0), [mpf(0), mpf(0.5)], ""),
          Function("slope", "w", lambda a: over_bell(a) - a / mp.sqrt(2 * mp.pi), mpf(1) / 10, [mpf(0.5)],
                   ", or of 0.1")]
TANH = [Function("value", "tanh", mp.tanh, mpf(0), [mpf(0), mpf(1)], "")]

GELU = [Function("tail", "a Q(a)", lambda a: a * mp.erfc(a / mp.sqrt(2)) / 2, mpf(0), [mpf(0), mpf(0.5)], "")]


def rounded(x, bits):
    with mp.workprec(bits):
        return +x


def points(piece):
    half = (piece.high - piece.low) / 2
    return [piece.low + half * (1 - mp.cos(mp.pi * (2 * i + 1) / (2 * POINTS))) for i in range(POINTS)]


def quarters(start, end):
    """The pieces as `in_pieces` finds them."""
    above, high = start, mpf(0)
    while high < end:
        # above = 2^exponent (1 + n / 4), with the exponent's bias of 3 modulo 4
        exponent = mp.frexp(above)[1] - 1
        quarter = mpf(2) ** (exponent - 2)
        low, high = high, min(above + quarter / 2 - start, end)
        yield Piece(low, above - start, high, (4 * (exponent + 3) + int(above / quarter) - 4) % 16)
        above += quarter


def squares(steps, end):
    """The pieces as `gelu_in_pieces` finds them."""
    edges = [mp.sqrt(9 + (mpf(i) - 0.5) / steps) - 3 for i in range(1, 16)]
    for number, (low, high) in enumerate(zip([mpf(0), *edges], [*edges, end])):
        yield Piece(low, near_float(GELU[0].value, (low + high) / 2) if number else mpf(0), high, number)


def near_float(function, x):
    """The float among those next to x for which the function is nearest to a float."""
    near = (rounded(x * (1 + k * mpf(2) ** -23), 24) for k in range(-300, 301))
    return min(near, key=lambda a: abs(function(a) / rounded(function(a), 24) - 1))


FORMATS = [Format("normal_tail.hpp", "struct NormalTail<float>", NORMAL, "float", 24, "f", 6, quarters,
                  {"start": "1.25", "end": "14.6"}),
           Format("normal_tail.hpp", "struct NormalTail<double>", NORMAL, "double", 53, "", 15, quarters,
                  {"start": "3", "end": "38.8"}),
           Format("tanh_pieces.hpp", "struct TanhPieces", TANH, "float", 24, "f", 6, quarters,
                  {"start": "0.75", "end": "9.02"}),
           Format("gelu_pieces.hpp", "struct GeluPieces", GELU, "float", 24, "f", 7, squares,
                  {"steps": "0.2545", "end": "5.36"})]


def polynomial(c, d, rounding=lambda x: x):
    value = c[-1]
    for x in c[-2::-1]:
        value = rounding(value * d + x)
    return value


def errors_of(function, piece, c, rounding=lambda x: x):
    for a in map(rounding, points(piece)):
        exact = function.value(a)
        yield abs(polynomial(c, a - piece.middle, rounding) - exact) / max(abs(exact), function.least)


def largest_of_runs(errors):
    """The places of the largest errors between changes of sign."""
    places = [0]
    for i, e in enumerate(errors):
        if (e > 0) != (errors[places[-1]] > 0):
            places.append(i)
        elif abs(e) > abs(errors[places[-1]]):
            places[-1] = i
    return places


def sampled(function, piece):
    """At the points of a piece: d, the value, and what errors are relative to."""
    values = [function.value(a) for a in points(piece)]
    return [a - piece.middle for a in points(piece)], values, [max(abs(v), function.least) for v in values]


def fit(function, piece, terms):
    """The coefficients of least largest error."""
    d, values, units = sampled(function, piece)
    lead = function.leading if piece.middle == 0 else []
    free = range(len(lead), terms)
    left = [v - polynomial(lead or [0], x) for v, x in zip(values, d)]
    places = [(2 * i + 1) * POINTS // (2 * len(free) + 2) for i in range(len(free) + 1)]
    while True:
        # sum of c[k] d^k +- largest = left,  at as many places as unknowns, the sign alternating
        system = [[d[i] ** k for k in free] + [(-1) ** row * units[i]] for row, i in enumerate(places)]
        *c, largest = mp.lu_solve(mp.matrix(system), mp.matrix([left[i] for i in places]))
        c = [mpf(0)] * len(lead) + c
        errors = [(v - polynomial(c, x)) / u for v, x, u in zip(left, d, units)]
        if max(map(abs, errors)) <= abs(largest) * (1 + mpf(10) ** -9):
            return lead + c[len(lead):]
        places = largest_of_runs(errors)
        while len(places) > len(free) + 1:
            places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)


def rounded_in_turn(function, piece, c, bits):
    """`c` rounded, those after each having taken over its error first (least squares)."""
    c = list(c)
    d, _, units = sampled(function, piece)
    for k in range(len(c)):
        lost, c[k] = c[k] - rounded(c[k], bits), rounded(c[k], bits)
        if lost != 0 and k + 1 < len(c):
            powers = mp.matrix([[x**j / u for j in range(k + 1, len(c))] for x, u in zip(d, units)])
            target = mp.matrix([lost * x**k / u for x, u in zip(d, units)])
            c[k + 1:] = [old + more for old, more in zip(c[k + 1:], mp.lu_solve(powers, target))]
    return c


def literal(x, form):
    """The shortest that reads as x."""
    if x == int(x):
        return str(int(x))
    text = next(t for t in (f"{float(x):.{n}g}" for n in range(1, 18)) if rounded(mpf(t), form.bits) == x)
    return re.sub("e-0", "e-", text) + form.suffix


def bound_text(x):
    """x rounded up to one digit."""
    power = int(mp.floor(mp.log10(x)))
    digit = int(mp.ceil(x / mpf(10) ** power))
    return f"{digit}e{power}" if digit < 10 else f"1e{power + 1}"


def pieces_of(form):
    return list(form.pieces(*(rounded(mpf(text), form.bits) for text in form.constants.values())))


def table_text(form, function):
    columns, worst = [[mpf(0)] * form.terms for _ in range(16)], 0
    for piece in pieces_of(form):
        columns[piece.number] = rounded_in_turn(function, piece, fit(function, piece, form.terms), form.bits)
        worst = max(worst, *errors_of(function, piece, columns[piece.number]))
    rows = ",\n".join("{" + ", ".join(literal(c[k], form) for c in columns) + "}" for k in range(form.terms))
    return (f"/// {function.name} within {bound_text(worst)} of it{function.remark}.\n"
            f"static constexpr {form.type} {function.table}[][16] = {{\n{rows}}};\n")


def constants_text(form):
    return ", ".join(f"{name} = {text}{form.suffix}" for name, text in form.constants.items())


def struct_text(form):
    tables = "".join(table_text(form, function) for function in form.functions)
    if form.pieces is squares:
        middles = ", ".join(literal(piece.middle, form) for piece in pieces_of(form))
        tables = f"static constexpr {form.type} middle[] = {{{middles}}};\n{tables}"
    template = "template <>\n" if "<" in form.struct else ""
    return f"{template}{form.struct} {{\nstatic constexpr {form.type} {constants_text(form)};\n{tables}}};\n"


def check(form, rounding):
    """Whether the struct for `form` keeps its bounds, if steps are rounded so."""
    text = (KERNELS / form.header).read_text()
    body = re.search(rf"{form.struct} {{(.*?)\n}};", text, re.S)[1]
    number = r"(-?[\d.]+(?:e-?\d+)?)f?"
    kept = f" {constants_text(form)};" in body
    if middles := re.search(r" middle\[] = {(.*?)}", body, re.S):
        middles = [rounded(mpf(t), form.bits) for t in re.findall(number, middles[1])]
    for function in form.functions:
        bound = rf"/// {re.escape(function.name)} within (\S+) of it{function.remark}\.\n"
        table = rf"[^\n]* {function.table}\[]\[16] = {{(.*?}})}};"
        bound, rows = re.search(bound + table, body, re.S).groups()
        rows = [[rounded(mpf(t), form.bits) for t in re.findall(number, row)] for row in rows.split("}")[:-1]]
        worst = 0
        for piece in pieces_of(form):
            kept = kept and (not middles or middles[piece.number] == piece.middle)
            c = [row[piece.number] for row in rows]
            largest = max(errors_of(function, piece, c, rounding))
            worst = max(worst, largest)
            print(f"{form.type} {function.table} {piece.number:2} from {mp.nstr(piece.low, 5):7} {mp.nstr(largest, 3)}")
        print(f"{form.type} {function.table}: {mp.nstr(worst, 3)}, the header says {bound}")
        kept = kept and worst <= mpf(bound)
    return kept


if __name__ == "__main__":
    if sys.argv[1:] == []:
        print("\n".join(map(struct_text, FORMATS)), end="")
    elif sys.argv[1:] == ["--check"]:
        kept = [check(form, lambda x: x) for form in FORMATS]
        sys.exit(0 if all(kept) else "the headers' bounds are not kept")
    elif sys.argv[1:] == ["--check", "--rounded"]:
        for form in FORMATS:
            check(form, lambda x: rounded(x, form.bits))
    else:
        sys.exit(__doc__)
