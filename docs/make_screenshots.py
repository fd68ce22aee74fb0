#!/usr/bin/env python3
"""Renders the pictures of the documents from the program's own output: runs it in tmux, captures the pane with its
colours, draws it with a monospaced font. Needs tmux, Pillow and DejaVu Sans Mono (python3-pil, fonts-dejavu-core).

A comment in docs/tour.md or docs/tour-drafting.md describes each picture of the tour: file and size, command, ':' commands, and the expected
text on the screen, which tests/docs/test_pictures.sh checks. It leaves out pictures of races, which take too long. The moving picture of
README (docs/specscope.gif) is a recording of one run, which STORY below directs. docs/layers.png is a figure that `specscope plot` draws.

usage: docs/make_screenshots.py [BUILD] [PICTURE...]      (from the repository's root, after `make`)
"""
import os, re, shlex, subprocess, sys, tempfile, time

from PIL import GifImagePlugin, Image, ImageDraw, ImageFont

CELL_W, CELL_H, SIZE = 8, 17, 13
FONT = {bold: ImageFont.truetype("DejaVuSansMono%s.ttf" % ("-Bold" if bold else ""), SIZE) for bold in (False, True)}
INK, PAPER = (208, 208, 208), (18, 18, 18)
BASIC = [(0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188), (17, 168, 205), (208, 208, 208),
         (102, 102, 102), (241, 76, 76), (35, 209, 139), (245, 245, 67), (59, 142, 234), (214, 112, 214), (41, 184, 219), (255, 255, 255)]


def palette(n):
    if n < 16:
        return BASIC[n]
    if n < 232:
        n -= 16
        return tuple(0 if v == 0 else 55 + 40 * v for v in (n // 36, n // 6 % 6, n % 6))
    return (8 + 10 * (n - 232),) * 3


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.ink = self.paper = None
        self.bold = self.dim = self.under = self.struck = self.reverse = False

    def apply(self, codes):
        codes = [int(c) if c else 0 for c in re.split("[;:]", codes)] or [0]
        i = 0
        while i < len(codes):
            c = codes[i]
            if c == 0:
                self.reset()
            elif c in (38, 48):
                if codes[i + 1] == 5:
                    colour, i = palette(codes[i + 2]), i + 2
                else:
                    colour, i = tuple(codes[i + 2:i + 5]), i + 4
                setattr(self, "ink" if c == 38 else "paper", colour)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.ink = BASIC[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.paper = BASIC[c - 40 if c < 100 else c - 92]
            elif c == 39:
                self.ink = None
            elif c == 49:
                self.paper = None
            else:
                for on, off, name in ((1, 22, "bold"), (2, 22, "dim"), (4, 24, "under"), (7, 27, "reverse"), (9, 29, "struck")):
                    if c in (on, off):
                        setattr(self, name, c == on)
            i += 1

    def colours(self):
        ink, paper = self.ink or INK, self.paper or PAPER
        if self.reverse:
            ink, paper = paper, ink
        if self.dim:
            ink = tuple((a + b) // 2 for a, b in zip(ink, paper))
        return ink, paper


def glyph(draw, x, y, char, ink, bold):
    code = ord(char)
    if 0x2800 <= code <= 0x28FF:  # braille: eight dots, drawn by hand, as most monospaced fonts lack them
        for bit, (column, row) in enumerate(((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))):
            if code - 0x2800 >> bit & 1:
                left, top = x + 1 + 4 * column, y + 2 + 4 * row
                draw.rectangle((left, top, left + 1, top + 1), fill=ink)
    else:
        draw.text((x, y), char, font=FONT[bold], fill=ink)


def picture(text, columns, rows):
    image = Image.new("RGB", (columns * CELL_W, rows * CELL_H), PAPER)
    draw = ImageDraw.Draw(image)
    style = Style()
    for row, line in enumerate(text.split("\n")[:rows]):
        x, carrier = 0, " "
        for m in re.finditer(r"\x1b\[([0-9;:]*)m|\x1b[^m]*?[A-Za-z\\]|(.)", line):
            if m.group(1) is not None:
                style.apply(m.group(1))
            elif m.group(2) is not None:
                if 0x335 <= ord(m.group(2)) <= 0x338:  # a stroke through the cell before
                    draw.line(((x - 1) * CELL_W, row * CELL_H + 9, x * CELL_W, row * CELL_H + 9), fill=style.colours()[0])
                    continue
                if 0x300 <= ord(m.group(2)) <= 0x36F:  # another mark on it, drawn with the letter that carries it
                    draw.text(((x - 1) * CELL_W, row * CELL_H), carrier + m.group(2), font=FONT[style.bold], fill=style.colours()[0])
                    continue
                carrier = m.group(2)
                ink, paper = style.colours()
                left, top = x * CELL_W, row * CELL_H
                draw.rectangle((left, top, left + CELL_W - 1, top + CELL_H - 1), fill=paper)
                glyph(draw, left, top, m.group(2), ink, style.bold)
                x += 1
    return image


wanted = []  # pictures; none: all


def shot(path, columns, rows, command, keys=(), seconds=4.0, script="", until=""):
    if wanted and path not in wanted:
        return
    folder = tempfile.mkdtemp()
    socket = os.path.join(folder, "tmux")
    if script:
        with open(os.path.join(folder, "script"), "w") as file:
            file.write(script)
        command += " --script " + file.name

    def tmux(*arguments):
        return subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", *arguments], check=True, capture_output=True, text=True).stdout

    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
    subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command],
                   check=True, env=environment)
    time.sleep(seconds)
    for _ in range(600):  # until the script has saved the screen
        if not until or os.path.exists(until):
            break
        time.sleep(0.1)
    for key in keys:
        tmux("send-keys", *key.split())
        time.sleep(2.5)
    picture(tmux("capture-pane", "-e", "-p"), columns, rows).quantize(128).save(path, optimize=True)
    subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
    print(path)


def tour(build):
    text = "".join(open(name).read() for name in ("docs/tour.md", "docs/tour-drafting.md"))
    comments = re.findall(r"<!-- (?:picture|race) (\S+) (\d+)x(\d+)\n(.*?)-->", text, re.S)
    for name, columns, rows, body in comments:
        command, *lines = body.strip().split("\n")
        done = os.path.join(tempfile.mkdtemp(), "screen.txt")
        script = "\n".join([line for line in lines if line.startswith(":")] + [":save-screen " + done, ""])
        shot("docs/" + name, int(columns), int(rows), command.replace("build/", build + "/", 1), (), 0.5, script, done)


# What happens in the moving picture: keys or a ':' command, and for how many seconds the screen is recorded after it at
# how many times its speed. A regular expression ends the recording of a step once the screen shows it.
STORY = [
    ("", 3.2, 1, ""),  # the heat map while a fable is written
    (":panel knobs", 0.6, 1, ""),
    ("Down Left Left Left Left Left Left", 1.8, 1, ""),  # a lower threshold
    ("w z", 2.4, 1, ""),  # what if, of two knobs at once
    ("z Escape", 0.5, 1, ""),
    (":tune 45s layerskip specbound ngram dv", 90, 20, "held out(?!.*at most)"),  # the race
    ("", 2.5, 1, ""),
]
FRAME_MS, COLOURS = 130, 96


def gif(frames, path):
    """Writes (image, milliseconds) as a GIF. Each frame contains only the pixels that differ from the one before it; the others are transparent."""
    sample = Image.new("RGB", (frames[0][0].width, frames[0][0].height * 5))
    for i in range(5):
        sample.paste(frames[(len(frames) - 1) * i // 4][0], (0, i * frames[0][0].height))
    palette = sample.quantize(COLOURS, dither=Image.Dither.NONE)
    clear, before = COLOURS, None
    colours = (palette.getpalette()[:3 * COLOURS] + [0] * 768)[:384]
    with open(path, "wb") as out:
        width, height = frames[0][0].size
        out.write(b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + b"\xf6\0\0" + bytes(colours))
        out.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")
        for image, milliseconds in frames:
            now = image.quantize(palette=palette, dither=Image.Dither.NONE)
            data = now.tobytes()
            changed = data if before is None else bytes(n if n != b else clear for n, b in zip(data, before))
            frame = Image.frombytes("P", image.size, changed)
            frame.putpalette(colours)
            for block in GifImagePlugin.getdata(frame, (0, 0), transparency=clear, duration=milliseconds, disposal=1, include_color_table=False):
                out.write(block)
            before = data
        out.write(b";")


def record(path, columns, rows, command):
    if wanted and path not in wanted:
        return
    socket = os.path.join(tempfile.mkdtemp(), "tmux")

    def tmux(*arguments):
        return subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", *arguments], check=True, capture_output=True, text=True).stdout

    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
    subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command],
                   check=True, env=environment)
    while not re.search("round ([6-9]|[1-9][0-9])", tmux("capture-pane", "-p")):
        time.sleep(0.05)
    screens = []  # text, milliseconds
    for step, seconds, speed, until in STORY:
        if step.startswith(":"):
            tmux("send-keys", "-l", step)
            tmux("send-keys", "Enter")
        for key in shlex.split(step) if not step.startswith(":") else ():
            tmux("send-keys", key)
            time.sleep(0.15)
        begun = at = time.time()
        while at - begun < seconds:
            screens.append(tmux("capture-pane", "-e", "-p"))
            if until and re.search(until, screens[-1], re.S):
                break
            time.sleep(max(0.0, at + FRAME_MS * speed / 1000 - time.time()))
            at = time.time()
    subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
    frames = []
    for i, text in enumerate(screens):
        if i > 0 and text == screens[i - 1]:
            frames[-1][1] += FRAME_MS
        else:
            frames.append([picture(text, columns, rows), FRAME_MS])
    gif(frames, path)
    print(path, len(frames), "frames", sum(f[1] for f in frames) / 1000, "seconds", os.path.getsize(path) // 1024, "KiB")


def figure(path, program):
    if wanted and path not in wanted:
        return
    trace = os.path.join(tempfile.mkdtemp(), "mice")
    subprocess.run([program, "run", "-n", "60", "--probe", "all", "--trace", trace, "-p", "Three mice sat on a wall,"], check=True, capture_output=True)
    subprocess.run([program, "plot", trace, "layers", "-o", path, "--from", "20", "--to", "34"], check=True)
    Image.open(path).convert("RGB").quantize(128, Image.Quantize.FASTOCTREE).save(path, optimize=True)
    print(path)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    program = os.path.join(build, "specscope")
    wanted.extend(sys.argv[2:])
    record("docs/specscope.gif", 120, 36, f"{program} --pace 14 --ignore-eos -n 400 --prompts models/prompts.jsonl")
    tour(build)
    figure("docs/layers.png", program)
    names = "-p 'Everybody in the valley knew Willa and Lorgar. Willa sat in the chapel and was merry. Lorgar was in the attic.'"
    shot("docs/del.png", 160, 48, f"{program} --policy del --pace 12 {names}", ["Tab Tab Tab"], 6.0)
    shot("docs/swift.png", 160, 48, f"{program} --policy swift --pace 30 --ignore-eos", ["Tab Tab Tab"], 9.0)
    shot("docs/specdecpp.png", 160, 48, f"{program} --policy specdecpp", [], 6.0, ":wait round 9\n:panel judge\n")
    shot("docs/sv.png", 160, 48, f"{program} --policy sv --set row_cost=0.2", [], 6.0, ":wait round 7\n:panel judge\n")
    shot("docs/batch.png", 160, 48, program + " --prompts tests/screens/prompts.jsonl --batch 4 --policy sd --pace 40 --ignore-eos", ["}"], 6.0)


if __name__ == "__main__":
    main()
