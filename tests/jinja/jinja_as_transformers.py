"""Jinja2 as transformers sets it up for chat templates, on a fixed day, without transformers."""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

DAY = datetime.datetime(2025, 3, 5)  # its day of the month has one digit


class Generation(jinja2.ext.Extension):
    """{% generation %}, which writes its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("write"), [], [], body).set_lineno(line)

    def write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: DAY.strftime(format)
    return env


def render(template, context):
    """(text, None), or (None, what went wrong)."""
    try:
        return environment().from_string(template).render(**context), None
    except Exception as e:  # any exception of a template
        return None, f"{type(e).__name__}: {e}"
