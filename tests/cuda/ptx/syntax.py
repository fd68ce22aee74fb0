"""What a PTX module consists of."""
from dataclasses import dataclass, field


@dataclass
class Number:
    """A constant: an integer, or the bits of an F32 or F64."""

    value: int
    kind: str = "integer"  # "f32", "f64"


@dataclass
class Name:
    """A register, variable, label or function."""

    text: str
    negated: bool = False


@dataclass
class Address:
    """[base + offset]; the base is a Name, or None: the offset alone."""

    base: Name
    offset: int


@dataclass
class Vector:
    parts: list


@dataclass
class Both:
    """d|p: a register and a predicate."""

    first: Name
    second: Name


@dataclass
class Variable:
    space: str  # ".global", ".const", ".shared", ".local", ".param"
    align: int
    type: str  # of an element, ".b8"
    name: str
    count: object  # elements; None: no array; 0: as many as a launch has
    extern: bool = False
    values: list = field(default_factory=list)  # numbers, and (name, offset) for addresses


@dataclass
class Registers:
    type: str
    names: list  # without a count; of %r<n> all names


@dataclass
class Scope:
    """{ … }, whose names nobody knows outside."""

    body: list


@dataclass
class Label:
    name: str


@dataclass
class Targets:
    """Label: .branchtargets …;"""

    name: str
    labels: list


@dataclass
class Instruction:
    opcode: str
    operands: list
    guard: Name  # None: always
    row: int  # of the PTX
    site: tuple  # (number of a file, line) of the source


@dataclass
class Function:
    kind: str  # ".entry", ".func"
    name: str
    results: list  # Variables in .param
    params: list
    body: list  # None: declared only
    threads: int = 0  # of a block, at most; 0: not said


@dataclass
class Module:
    version: str = ""
    target: str = ""
    files: dict = field(default_factory=dict)  # by number: names of sources
    variables: list = field(default_factory=list)
    functions: list = field(default_factory=list)
