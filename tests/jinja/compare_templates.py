#!/usr/bin/env python3
"""Every chat template at hand, rendered by build/tests/chat_render and by Jinja2: must be equal, or both must refuse.

    python3 tests/jinja/compare_templates.py build/tests/chat_render FOLDER …

FOLDER holds *.jinja files, and any tokenizer_config.json below it. Needs jinja2. Ends with "N compared, N differ".
"""
import json
import pathlib
import subprocess
import sys

import dialogues
import jinja_as_transformers

def templates(folders):
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.rglob("*.jinja")):
            yield path.name, path.read_text()
        for path in sorted(folder.rglob("tokenizer_config.json")):
            given = json.loads(path.read_text()).get("chat_template")
            for one in given if isinstance(given, list) else [{"name": "", "template": given}] if given else []:
                yield f"{path.parent.name} {one['name']}", one["template"]


def main():
    program = subprocess.Popen(sys.argv[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    compared = differ = refused = 0
    for name, template in templates(sys.argv[2:]):
        for what, context in dialogues.contexts().items():
            expected, why = jinja_as_transformers.render(template, context)
            program.stdin.write(json.dumps({"template": template, "context": json.dumps(context)}) + "\n")
            program.stdin.flush()
            got = json.loads(program.stdout.readline())
            compared += 1
            refused += expected is None
            if got.get("text") != expected:
                differ += 1
                print(f"{name}, {what}:\n  jinja2    {expected!r} {why}\n  specscope {got}")
    print(f"{compared} compared, {refused} refused by both, {differ} differ")
    return differ > 0 or compared == 0


sys.exit(main())
