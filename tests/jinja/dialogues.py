"""Dialogues that templates are tried on."""

SYSTEM = {"role": "system", "content": "You are terse. <b>\n"}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather & more", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Where, e.g. \"Köln\""},
            "days": {"type": "integer", "default": 1, "enum": [1, 2, 3]},
            "units": {"type": ["string", "null"], "description": None},
            "at": {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90.0}}},
            "tags": {"type": "array", "items": {"type": "string"}}}}, "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "stop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def call(arguments, **more):
    return {"role": "assistant", "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}], **more}


def answer(content, **more):
    return {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": content, **more}


ARGUMENTS = {"city": "Köln", "days": 2, "at": {"lat": 50.9}, "tags": ["a", "b"], "deep": True, "nothing": None}
TURNS = [{"role": "user", "content": "  Hi, two  words\t\n"}, {"role": "assistant", "content": "Hello!\n"},
         {"role": "user", "content": "Wie geht's? 😀 <|im_end|>"}]
THOUGHT = [{"role": "user", "content": "1 + 1?"},
           {"role": "assistant", "content": "<think>\nEasy.\n</think>\n\n2", "reasoning_content": "Easy."},
           {"role": "user", "content": "And 2 + 2?"}]
DIALOGUES = {
    "user": {"messages": TURNS[:1]},
    "system and user": {"messages": [SYSTEM] + TURNS[:1]},
    "several turns": {"messages": [SYSTEM] + TURNS},
    "several turns, no system, no prompt": {"messages": TURNS[:2], "add_generation_prompt": False},
    "an assistant goes on": {"messages": [SYSTEM] + TURNS[:2], "add_generation_prompt": False, "continue_final_message": True},
    "thinking": {"messages": THOUGHT, "enable_thinking": True, "thinking": True},
    "no thinking": {"messages": [SYSTEM] + THOUGHT, "enable_thinking": False, "thinking": False, "reasoning_effort": "low"},
    "thinking apart": {"messages": [TURNS[0], {"role": "assistant", "content": "2", "reasoning_content": "Easy.", "thinking": "Easy."},
                                    TURNS[2]], "enable_thinking": True},
    "tools": {"messages": [SYSTEM] + TURNS[:1], "tools": TOOLS},
    "tools, no system": {"messages": TURNS[:1], "tools": TOOLS},
    "a call": {"messages": TURNS[:1] + [call(ARGUMENTS, content=""), answer('{"sky": "blue"}'), TURNS[2]], "tools": TOOLS},
    "a call, its arguments a text": {"messages": [SYSTEM] + TURNS[:1] + [call('{"city": "Köln"}', content=None), answer("blue")],
                                     "tools": TOOLS},
    "a call without content": {"messages": TURNS[:1] + [call(ARGUMENTS), answer({"sky": ["blue", 1.5]})], "tools": TOOLS},
    "a call with thoughts": {"messages": TURNS[:1] + [call(ARGUMENTS, content="Look.", reasoning_content="Hm."), answer("blue"),
                             {"role": "assistant", "content": "Blue."}], "tools": TOOLS, "enable_thinking": True},
    "content in parts": {"messages": [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
                                      {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"},
                                                                   {"type": "text", "text": " there"}]}]},
    "an unknown role": {"messages": [{"role": "observer", "content": "?"}]},
    "wrong turns": {"messages": [TURNS[0], TURNS[0]]},
    "developer": {"messages": [{"role": "developer", "content": "Be kind."}] + TURNS[:1], "builtin_tools": ["browser"],
                  "model_identity": "You are M.", "reasoning_effort": "high"},
    "documents": {"messages": TURNS[:1], "documents": [{"title": "A", "text": "Aa", "doc_id": 1}, {"title": "B", "contents": "Bb"}],
                  "citation_mode": "fast", "date_string": "26 Jul 2024"},
    "nothing": {"messages": []},
}


def contexts():
    """What each template is rendered with: its variables, by the dialogue's name."""
    return {name: {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", **dialogue}
            for name, dialogue in DIALOGUES.items()}
