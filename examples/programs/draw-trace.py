#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws a trace, as `--trace` writes it, as an SVG picture: a row for each queue of each rank."""
import argparse
import html
import json
import sys

COLOURS = {"compute": "#4c78a8", "communication": "#e0862b", "wait": "#dddddd", "copy": "#b279a2", "step": "#5b3a8c"}
WIDTH, LEFT, HEIGHT, GAP, STRIPE = 1000, 150, 22, 8, 5


def rows_of(events):
    """The names of the rows, by rank and queue, in the trace's order."""
    ranks = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    queues = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    return {key: f"{ranks[key[0]]} {name}" for key, name in sorted(queues.items())}


def draw(events, least=0):
    """`least`: microseconds that the picture shows at least, so that pictures of several runs can have one scale."""
    rows = rows_of(events)
    spans = [e for e in events if e["ph"] == "X"]
    begin, end = min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)
    end = max(end, begin + least)
    scale = (WIDTH - LEFT - 10) / (end - begin)
    height = len(rows) * (HEIGHT + GAP) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    top = {}
    for i, (key, name) in enumerate(rows.items()):
        top[key] = 10 + i * (HEIGHT + GAP)
        out.append(f'<text x="4" y="{top[key] + 15}">{html.escape(name)}</text>')
    # Waits are drawn first, below what they wait for; the steps of collectives last, as a stripe of their collective.
    for e in sorted(spans, key=lambda e: {"wait": 0, "step": 2}.get(e["cat"], 1)):
        x, width = LEFT + (e["ts"] - begin) * scale, max(e["dur"] * scale, 0.5)
        y, colour = top[e["pid"], e["tid"]], COLOURS[e["cat"]]
        title = f'{e["name"]}: {e["args"].get("collective") or e["args"]["operation"]}, {e["dur"]:.1f} us'
        if e["cat"] == "step":
            title += f', {e["args"]["does"]}'
        height_of = HEIGHT if e["cat"] != "step" else STRIPE
        out.append(f'<rect x="{x:.1f}" y="{y + HEIGHT - height_of}" width="{width:.1f}" height="{height_of}" fill="{colour}"><title>{html.escape(title)}</title></rect>')
        if e["cat"] not in ("wait", "step") and width > 6.5 * len(e["name"]):
            out.append(f'<text x="{x + 2:.1f}" y="{y + 15}" fill="white">{html.escape(e["name"])}</text>')
    y = height - 12
    out.append(f'<text x="{LEFT}" y="{y}">0</text>')
    out.append(f'<text x="{WIDTH - 10}" y="{y}" text-anchor="end">{end - begin:.0f} us</text>')
    x = LEFT + 60
    for what, colour in COLOURS.items():
        if any(e["cat"] == what for e in spans):
            out.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="{y}">{what}</text>')
            x += 120
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", help="a file that `braid run --trace` has written")
    parser.add_argument("-o", "--output", help="the picture (default: standard output)")
    parser.add_argument("--span", type=float, default=0, metavar="MICROSECONDS", help="that the picture shows at least, for several pictures of one scale")
    parser.add_argument("--without-steps", action="store_true", help="leave out the steps of collectives, which are many where much is sent")
    arguments = parser.parse_args()
    try:
        with open(arguments.trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        picture = draw([e for e in events if not (arguments.without_steps and e.get("cat") == "step")], arguments.span)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{parser.prog}: error: {arguments.trace} is no trace that can be read: {error}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(picture)
    else:
        print(picture, end="")


if __name__ == "__main__":
    main()
