#!/usr/bin/env python3
"""Golden first turns of dialogues under Llama 3 templates, with and without date lines, as transformers writes them.

    pip install transformers jinja2
    python3 tests/golden/make_chat_golden.py > tests/golden/chat.json
    python3 tests/golden/make_chat_golden.py Llama-3.2-3B-Instruct.jinja … > chat.json

The templates below ask for what Meta's do (a fixed date in Llama 3.1 and 3.3, the day's in 3.2, no dates in 3.0) in words of
our own; the second form takes the owners' files instead, for a check at home: SPECSCOPE_CHAT_GOLDEN=chat.json test_chat.
The day is DAY for all. The output: a list of {template, system (or null), user, text}; text without the BOS.
"""
import datetime
import json
import pathlib
import sys

import transformers
from transformers.utils import chat_template_utils

DAY = datetime.datetime(2025, 3, 5)  # its day of the month has one digit
TURNS = [(None, "Hi"), ("Be kind.", "Hi"), ("", "Hi"), ("  Be kind.\n", "\n two  words\t\n"), ("Sei nett. 你好", "Wie geht's? 😀")]
HEADERS = r"""{%- macro header(role) %}{{- '<|start_header_id|>' + role + '<|end_header_id|>\n\n' }}{%- endmacro %}"""
SYSTEM = r"""
{%- set said = messages[0]['content'] | trim if messages[0]['role'] == 'system' else '' %}
{%- set messages = messages[1:] if messages[0]['role'] == 'system' else messages %}
{{- bos_token + header('system') + 'Cutting Knowledge Date: December 2023\nToday Date: ' + date_string + '\n\n' + said + '<|eot_id|>' }}"""
TURN = r"""
{%- for m in messages %}{{- header(m['role']) + m['content'] | trim + '<|eot_id|>' }}{%- endfor %}
{%- if add_generation_prompt %}{{- header('assistant') }}{%- endif %}
"""
FIXED = r"""{%- if not date_string is defined %}{%- set date_string = "26 Jul 2024" %}{%- endif %}"""
SINGLE = r"""{%- set date_string = '01 Dec 2024' %}"""
TODAY = r"""
{%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}
{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}"""
TEMPLATES = [HEADERS + FIXED + SYSTEM + TURN, HEADERS + SINGLE + SYSTEM + TURN, HEADERS + TODAY + SYSTEM + TURN,
             HEADERS + "{{- bos_token }}" + TURN]



class Stopped(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DAY


chat_template_utils.datetime = Stopped  # its strftime_now asks this
folder = pathlib.Path(__file__).parent / "models" / "llama"
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), bos_token="<s>")
golden = []
for template in [pathlib.Path(p).read_text() for p in sys.argv[1:]] or TEMPLATES:
    for system, user in TURNS:
        if system == "" and "Today Date" not in template:
            continue  # an empty system turn is written there; here "" means none
        messages = [] if system is None else [dict(role="system", content=system)]
        text = tokenizer.apply_chat_template(messages + [dict(role="user", content=user)], chat_template=template, tokenize=False,
                                             add_generation_prompt=True)
        assert text.startswith("<s>")
        golden.append(dict(template=template, system=system, user=user, text=text.removeprefix("<s>")))
json.dump(golden, sys.stdout, indent=1, ensure_ascii=False)
print()
