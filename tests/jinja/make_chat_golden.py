#!/usr/bin/env python3
"""Golden renderings of small templates (features.py, and tests/jinja/templates under the dialogues of dialogues.py) by jinja2.

    pip install jinja2
    python3 tests/jinja/make_chat_golden.py > tests/golden/chat.json

A list of {template, context (an object as text), text (null: jinja2 refuses)}; the day is that of jinja_as_transformers.
"""
import json
import pathlib
import sys

import dialogues
import features
import jinja_as_transformers


def golden(template, context):
    return {"template": template, "context": json.dumps(context, ensure_ascii=False),
            "text": jinja_as_transformers.render(template, context)[0]}


def main():
    all = [golden(template, features.CONTEXT) for template in features.TEMPLATES]
    for path in sorted((pathlib.Path(__file__).parent / "templates").glob("*.jinja")):
        all += [golden(path.read_text(), context) for context in dialogues.contexts().values()]
    print("[" + ",\n ".join(json.dumps(one, ensure_ascii=False) for one in all) + "]")


main()
