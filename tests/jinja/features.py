"""Small templates, each for a feature or a corner of it, and the variables that all of them see."""

CONTEXT = {
    "n": 3, "m": -7, "x": 2.5, "y": 1e16, "z": -0.0, "t": True, "f": False, "nothing": None, "empty": "", "s": "Hello, World",
    "u": "ÄÖ ß ñ 日本 😀", "padded": " \t two  words \n", "lines": "a\n b\n\nc\r\nd", "html": "<a href=\"x\">'&'</a>",
    "l": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, [2, "3"]], {"k": [None, True]}],
    "d": {"b": 1, "a": {"c": [1.0, 2]}, "items": "shadowed", "Z": None}, "e": {}, "vacant": [],
    "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30, "tags": []}],
    "big": 9007199254740993, "quote": "it's \"so\"\\\n", "ctl": "\u0001\u007f\u00a0\u200b\u2028", "digits": "42", "decimal": " 3.50 ",
}

TEMPLATES = r"""
{{ s }}
{{ s }} and {{ n }} and {{ x }} and {{ t }} and {{ nothing }} and {{ missing }}.
{{ l }} {{ d }} {{ e }} {{ vacant }} {{ nested }} {{ people }}
{{ (1,) }} {{ () }} {{ (1, 'a', [2]) }} {{ {'a': 1, 2: 'b', none: true} }}
{{ y }} {{ z }} {{ 1.0 }} {{ 0.1 }} {{ 0.00001 }} {{ 123456789.125 }} {{ 15000000000000000000000.0 }} {{ 100000000000000000.0 }} {{ 0.0001 }}
{{ 'a' 'b' "c" }} {{ 'it\'s' }} {{ "tab\there\n\x41\u00e9\q" }}
{{ [s, u, quote, ctl] }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }}
{{ 1 / 3 }} {{ 10 / 5 }} {{ true + true }} {{ n - -m }} {{ -x }} {{ not n }} {{ not not n }}
{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'x' ~ 1 ~ none ~ [1] ~ missing }}
{{ 1 ~ 2 + 3 }}
{{ (1 + 2) ~ 3 }}{{ 1 + (2 ~ 3) }}
{{ 'a' ~ 'b' * 2 ~ 'c' }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ 1 != 2 }} {{ 2 >= 2 }} {{ (1, 2) == [1, 2] }}
{{ 'a' in s }} {{ 'World' in s }} {{ 3 in l }} {{ 9 not in l }} {{ 'b' in d }} {{ 1 in d }} {{ not 3 in l }} {{ missing in l }} {{ missing == missing2 }}
{{ 1 and 2 }} {{ 0 or 'x' }} {{ '' or none or [] }} {{ 1 and 0 or 5 }} {{ missing or 'd' }}
{{ 'yes' if t else 'no' }} {{ 'yes' if f else 'no' }} {{ 'yes' if f }}. {{ 1 if 0 else 2 if 0 else 3 }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ s[0] }} {{ s[-1] }} {{ u[3] }} {{ u[-1] }} {{ d['a']['c'][0] }} {{ d['nope'] }} {{ d.nope }}
{{ l[1:] }} {{ l[:2] }} {{ l[::2] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[5:] }} {{ s[1:4] }} {{ u[3:6] }} {{ s[-3:] }} {{ l[:-1] }} {{ (1,2,3)[1:] }} {{ s[:none] }}
{{ d.items() | list }} {{ d['items'] }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ e.items() | list }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }};{% endfor %}{% for c in u %}[{{ c }}]{% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for i in l if i > 1 %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ i }}{{ loop.nextitem is defined }};{% else %}none{% endfor %}
{% for i in l if i > 9 %}{{ i }}{% else %}none{% endfor %} {% for i in missing %}{{ i }}{% else %}empty{% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in range(2) %}{% for j in range(2) %}{{ loop.index }}{{ i }}{{ j }},{% endfor %}{{ loop.index }};{% endfor %}
{% set ns = namespace(found=false, n=0) %}{% for i in l if not ns.found %}{{ i }}{% set ns.found = true %}{% endfor %}{{ ns.found }}{{ ns.n }}{{ ns.nope }}.
{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }},{% endfor %}{{ a }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = a, b %}{{ c }}
{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.a, q = 2, 3 %}{{ ns.a }}{{ q }}
{% if n > 5 %}a{% elif n > 2 %}b{% elif n > 1 %}c{% else %}d{% endif %}{% if missing %}x{% endif %}
{% if t %}{% set v = 1 %}{% endif %}{{ v }}{% if f %}{% set w = 1 %}{% endif %}{{ w }}.
{% set text %}a {{ n }} b{% endset %}[{{ text }}]{% set up | upper | trim %}  q {% endset %}[{{ up }}]
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='y') }} {{ m() }} {{ m(b=1, a=0) }}
{% macro fact(k) %}{% if k > 1 %}{{ k }}*{{ fact(k - 1) }}{% else %}1{% endif %}{% endmacro %}{{ fact(5) }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ a() }}
{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(5) }}
{% set v = 1 %}{% macro m() %}{{ v }}{% set v = 2 %}{{ v }}{% endmacro %}{{ m() }}{{ v }}{% set v = 3 %}{{ m() }}
{{ mm(1) if mm is defined else 'undefined' }}{% macro mm(a) %}{{ a }}{% endmacro %}
{% filter upper %}a {{ s }}{% endfilter %}{% filter replace('a', 'b') | upper %}banana{% endfilter %}
{% generation %}G{{ n }}{% endgeneration %}
a {# comment {{ x }} #} b {#- trims -#}   c
{%- if t -%}   a   {%- endif -%}   b
  {% if t %}
  lstrip
  {% endif %}
{% if t +%} kept
x  {%+ if t %}y{% endif %}
{% for i in l %}
{{ i }}
{% endfor %}
a
   {{- n -}}
   b
{{ s | upper }} {{ s | lower }} {{ s | capitalize }} {{ 'they\'re bill\'s (friends) [x]-y' | title }} {{ 'äñ日本😀' | upper }} {{ u | lower }} {{ 'ǆ éa Ω' | title }} {{ 'ǆa'.title() }} {{ 'éÀ'.capitalize() }}
[{{ padded | trim }}] [{{ 'xxaxx' | trim('x') }}] [{{ padded.strip() }}] [{{ padded.lstrip() }}] [{{ padded.rstrip() }}] [{{ 'abcab'.strip('ab') }}] [{{ '日a日'.strip('日') }}]
{{ s | length }} {{ u | length }} {{ l | length }} {{ d | length }} {{ d | count }} {{ missing | length }} {{ (1, 2) | length }} {{ range(5) | length }}
{{ l | first }} {{ l | last }} {{ vacant | first }} {{ s | first }} {{ s | last }} {{ d | first }} {{ vacant | last }}.
{{ l | sort }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ words | sort(reverse=true) }} {{ people | sort(attribute='age') | map(attribute='name') | list }}
{{ l | join }} {{ l | join(', ') }} {{ people | join('/', attribute='name') }} {{ 'abc' | join('-') }} {{ [1, none, true, 'x'] | join('|') }} {{ missing | join(',') }}.
{{ l | reverse | list }} {{ s | reverse }} {{ l | list }} {{ s | list }} {{ d | list }} {{ [1, 2, 1, 'a', 'A'] | unique | list }}
{{ people | map(attribute='name') | list }} {{ people | map(attribute='tags', default='-') | list }} {{ words | map('upper') | list }}
{{ l | select('>', 1) | list }} {{ l | reject('odd') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ people | selectattr('tags') | map(attribute='name') | list }} {{ people | selectattr('age', 'equalto', 30) | list | length }} {{ people | rejectattr('tags', 'defined') | list }}
{{ 'on' if vacant | select else 'off' }} {% set g = l | map('string') %}{{ g | list }}{{ g | list }}
{{ d | items | list }} {{ d | dictsort }} {{ {'b': 2, 'A': 1} | dictsort }} {{ missing | items | list }}
{{ missing | default('x') }} {{ '' | default('x') }} {{ '' | default('x', true) }} {{ nothing | d('x') }} {{ missing | default }}.
{{ lines | indent }} {{ lines | indent(2, true) }} {{ lines | indent(2, blank=true) }} {{ lines | indent('> ') }}
{{ '42' | int }} {{ '4.7' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ 4.9 | int }} {{ ' -10 ' | int }} {{ '1e3' | int }} {{ '0x1f' | int }} {{ decimal | int }} {{ true | int }} {{ nothing | int }}
{{ s | replace('o', '0') }} {{ s | replace('o', '0', 1) }} {{ 'aaa' | replace('', '-') }} {{ 5 | replace(5, 6) }} {{ 'a.b'.replace('.', '') }} {{ 'aaa'.replace('a', 'b', 2) }}
{{ s | string }} {{ n | string + 'x' }} {{ l | string }} {{ none | string | length }}
{{ d | tojson }} {{ nested | tojson }} {{ u | tojson }} {{ u | tojson(ensure_ascii=true) }} {{ quote | tojson }} {{ ctl | tojson }} {{ ctl | tojson(true) }} {{ html | tojson }} {{ x | tojson }} {{ y | tojson }} {{ (1, 2) | tojson }} {{ big | tojson }}
{{ d | tojson(indent=2) }} {{ nested | tojson(indent=4) }} {{ e | tojson(indent=2) }} {{ d | tojson(separators=(',', ':')) }} {{ d | tojson(indent='\t', sort_keys=true) }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }} {{ l | tojson(indent=0) }}
{{ html | safe }} {{ (html | safe) ~ '<b>' }}{{ (html | safe) | upper }} {{ d | tojson | safe }} {{ (html | safe) + '<b>' }} {{ '<b>' + (html | safe) }} {{ 'a' | safe + html + n | tojson }}
{{ l | min }} {{ l | max }} {{ words | min }} {{ words | max(case_sensitive=true) }} {{ vacant | max }} {{ people | max(attribute='age') }}
{{ '{} {}'.format(1, 'a') }} {{ '{}{{}}{}'.format(none, [1.5, 'q']) }} {{ '{}'.format(missing) }}.
{{ s.split(', ') }} {{ 'a b  c'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split(' ') }} {{ lines.split('\n')[-1] }} {{ 'a b c'.split(none, 1) }}
{{ s.startswith('Hell') }} {{ s.endswith(('x', 'World')) }}
{{ s.upper() }} {{ s.title() }} {{ 'hELLO wORLD'.capitalize() }} {{ ','.join(['a', 'b']) }}
{{ n is number }} {{ t is number }} {{ t is boolean }} {{ t is true }} {{ f is false }} {{ 1 is true }} {{ n is integer }} {{ x is float }} {{ s is string }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ d is mapping }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ missing is iterable }}
{{ missing is defined }} {{ n is defined }} {{ d.nope is undefined }} {{ nothing is none }} {{ missing is none }} {{ n is odd }} {{ n is even }} {{ n is eq 3 }} {{ n is gt(2) }} {{ n is in [1, 3] }} {{ n is not none }}
{{ n is defined and n is number or false }} {{ not n is defined }} {{ n is string or s is string }}
{{ range(5) | list }} {{ range(2, 8, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(3)[1] }} {{ 2 in range(3) }} {{ dict(a=1, b=2) }} {{ dict(d, b=5)['b'] }}
{{ strftime_now('%Y-%m-%d %d %B %b %A %H:%M:%S %j %%') }}
{{ namespace(a=1) }} {{ namespace({'b': 2}) }}
{{ [1, 2] is sequence and 'ok' }} {{ 1.5 is number }} {{ l == [3, 1, 2] }} {{ d == dict(d) }} {{ [1, 'a'] == [1.0, 'a'] }}
{% set x = [] %}{{ x + [1] }}{{ [] is iterable }}{{ ((1, 2), 3) }}{{ (-1) | string | length }}
{{ n.foo is defined }}{{ s.foo is defined }}{{ l.foo }}{{ nothing.foo }}{{ d.a.q }}.
{{ {'a': {'b': 1}}.a.b }} {{ [1, 2, 3][1] }} {{ 'abc'[1] }} {{ ('a', 'b')[1] }} {{ 'a,b'.split(',')[1].upper() | lower }}
{{ people | map(attribute='name') | map('lower') | join(', ') }} {{ people[0]['name'] }} {{ people | map('length') | list }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'x', 1.0: 'y', true: 'z'} }} {{ d | length > 2 }} {{ s|length - 1 }} {{ 5 if l|length > 2 else 6 }}
{{ missing.foo }}
{{ missing + 1 }}
{{ missing() }}
{{ d.nope.deeper }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ 1 / 0 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ n | length }}
{{ missing | tojson }}
{{ 'a' in 5 }}
{{ 5 in 'a' }}
{{ [1, 2].append(3) }}
{{ d.update({}) }}
{{ raise_exception('No: ' + s) }}
{{ s.nope() }}
{{ s | nope }}
{{ s is nope }}
{% if f %}{{ s | nope }}{% endif %}ok
{{ 'a' if t else (s | nope) }}
{% for i in 5 %}{% endfor %}
{% for a, b in [1, 2] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% set d.a = 1 %}
{% do l.append(1) %}
{% nope %}
{% if t %}unclosed
{{ unclosed
{{ 1 + }}
{{ (1 }}
{{ 'unclosed }}
{% endif %}
{% break %}
{{ s.split('') }}
{{ {[1]: 2} }}
{{ l['a'].b }}
{{ l | join(',', 'nope') }}
{{ l | first(1) }}
{{ [3, 'a'] | sort }}
{{ '{}'.format() }}
{{ -s }}
{{ l[::0] }}
{{ range(1000000) }}
{{ l | map('upper', 'x') | list }}
{{ people | map(attribute='nope.deeper') | list }}
{{ s | replace('a') }}
{{ a.b.c if a is defined else 'no a' }}{{ 'x' is nope if f else 1 }}
""".strip("\n").split("\n")

# A name that a scope sets, read before that. Where jinja2 finds it unset in scopes within, although the caller passed
# it, there is no template.
TEMPLATES += [
    "{{ n }}{% for i in l %}[{{ n }}]{% endfor %}{% set n = 2 %}{{ n }}",
    "{% if t %}{% set n = 2 %}{% endif %}{% for i in l %}{{ n }}{% endfor %}",
    "{% for i in l %}{% for j in l %}({{ n }}){% endfor %}{% set n = i %}{% endfor %}{{ n }}",
    "{% for i in l %}{% for j in l %}({{ v }}){% endfor %}{% set v = i %}{% endfor %}{% set v = 1 %}", "{% set n = n %}{{ n }}",
    "{% filter upper %}{{ s }}{% endfilter %}{% if f %}{% set s = 1 %}{% endif %}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in vacant %}{% else %}{{ n }}{% set n = 1 %}{{ n }}{% endfor %}{{ n }}", "{% macro n() %}M{% endmacro %}{% for i in l %}{{ n() }}{% endfor %}",
    "{% generation %}{{ n }}{% endgeneration %}",
]

# Templates of several lines.
TEMPLATES += [
    "a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n    {% if t %}\n  b\n    {% endif %}   \nc", "a\r\n{% if t %}\r\nb\r{% endif %}\r\n",
    "{% for i in l %}\n  {{ i }}\n{% endfor %}\nend\n\n", "  {#- c -#}  \n x {# d #}\n y", "a\n  {#+ c +#}\n b", "\n{{ n }}\n\n{{ n }}\n",
    "{% set a %}\n  x\n{% endset %}\n[{{ a }}]",
    "{{\n  n\n  +\n  1\n}}", "{% if t %}{% if f %}\na{% else %}\nb\n{% endif %}\n{% endif %}c", "a{%- for i in l -%}\n {{ i }} \n{%- endfor %}\n",
    "{%- macro m(a,\n   b=1) -%}\n {{ a }} \n{{- b -}} \n{%- endmacro -%}\n{{ m(1) }}|{{- m(2, 3) }}", "\t{% if t %}x{% endif %}\t\n\t{{ n }}\t\n",
    "a\n  {%+ if t %}b{% endif +%}\nc", "{{ '\n' }}{{ 'a\\\nb' }}", "{{ 'x' }}\n", "", "\n", "{% set x = 'a\nb' %}{{ x | tojson }}",
    "{{ {'a': 1,\n 'b': [1,\n 2,],} }}", "  {% set q = 1 %}  \n  {{ q }}  ", "{{- ' a' -}}   \n{{ 'b' +}}" if False else "{{- ' a' -}}   \n{{ 'b' }}",
]
