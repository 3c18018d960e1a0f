"""
3,000 visitors find their products: an animation of one poll, asked evenly and asked by equipoise.

Every dot is a visitor who is asked about one product, solid for a yes and faint for a no. Under an even split all
columns grow alike, and the product that divides opinion remains the least known. equipoise grows the columns until all
six are known about equally well. The loop begins at its end, with the finished poll: the first thing that one sees is
the result.
"""

from collections import defaultdict
from random import Random

import picture

import equipoise as eq

TASTE = {"chilli chocolate": 0.97, "oat ice cream": 0.90, "cardamom coffee": 0.52, "seaweed crisps": 0.31,
         "beet lemonade": 0.08, "salted liquorice": 0.04}  # fmt: skip
VISITORS, BATCH, LOOP = 3000, 30, 16  # visitors in all, visitors that move together, seconds of one loop
ARRIVE, FALL, FADE = 80, 4, 96  # percent of the loop: the last have set out; how long a fall takes; all fade
ACROSS, PITCH, COLUMN = 23, 2.6, 68  # dots in a row, pixels between dots, pixels between columns
CENTRE, STRIP, POINT = 138, 50, 4  # pixels: middle of the intervals, half the height that they have, a point
SHARES, FLOOR = 208, 346  # pixels: ends of the intervals in words, foot of the columns


def poll(strategy: str) -> tuple[list[tuple[str, bool]], list[list[float]], eq.Result]:
    """Ask every visitor about one product; return the answers, and the intervals' widths in points after each batch."""
    study = eq.Study(TASTE, budget=VISITORS, strategy=strategy, support="binary")
    opinions = {product: Random(f"{product} 4") for product in TASTE}
    answers, widths = [], []
    while not study.done:
        ticket = study.ask()
        answers.append((ticket.arm, opinions[ticket.arm].random() < TASTE[ticket.arm]))
        study.tell(ticket, answers[-1][1])
        if len(answers) % BATCH == 0:
            widths.append([200 * float(half) for half in study.result().intervals().half_widths])
    return answers, widths, study.result()


def dots(answers: list[tuple[str, bool]]) -> str:
    """Draw the visitors of each batch, product and answer as one path of round dots."""
    asked, paths = dict.fromkeys(TASTE, 0), defaultdict(list)
    for visitor, (product, yes) in enumerate(answers):
        paths[visitor // BATCH, product, yes].append(divmod(asked[product], ACROSS))
        asked[product] += 1
    drawn = ""
    for (batch, product, yes), places in paths.items():
        foot = places[0][0]
        path = "".join(f"M{place * PITCH:.1f} {(foot - row) * PITCH:.1f}h0" for row, place in places)
        names = f"{'y' if yes else 'n'} c{list(TASTE).index(product)} b{batch}"
        drawn += f'<path class="{names}" style="--y:{-foot * PITCH:.1f}px" d="{path}"/>'
    return drawn


def interval(key: str, x: int, widths: list[float]) -> str:
    """Draw the interval of a product as a bar that shrinks from step to step."""
    times = [FALL + ARRIVE * step / len(widths) for step in range(1, len(widths) + 1)]
    sizes = [width / widths[-1] for width in widths]
    steps = [f"{time:.1f}%{{transform:scaleY({size:.2f})}}" for time, size in zip(times, sizes, strict=True)][1::3]
    frames = f"@keyframes {key}{{0%{{transform:scaleY({100 / widths[-1]:.1f})}}{''.join(steps)}}}"
    half = POINT * widths[-1] / 2
    return (
        f'<style>{frames}</style><rect class="i" x="{x}" y="{CENTRE - half:.1f}" width="16" height="{2 * half:.1f}" '
        f'style="animation-name:{key}"/>'
    )


def text(css: str, x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text class="{css}" x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>'


def panel(name: str, answers: list[tuple[str, bool]], widths: list[list[float]], result: eq.Result) -> str:
    """Draw a poll: its headline, six intervals above, six columns of dots below."""
    parts = [f'<g class="{name.split()[0]}">', text("h", 0, 72, name, "start")]
    parts.append(text("s f", 420, 72, f"widest interval: {max(widths[-1]):.0f} points", "end"))
    for points in (-10, 0, 10):
        y = CENTRE - POINT * points
        parts += [
            f'<path class="g" d="M0 {y}h376"/>',
            text("s a", 420, y + 4, f"{points:+}".replace("-", "−") if points else "points", "end"),
        ]
    bars = [interval(f"i{name[:2]}{k}", k * COLUMN + 20, [step[k] for step in widths]) for k in range(len(TASTE))]
    parts.append(f'<g clip-path="url(#strip)">{"".join(bars)}</g>')
    for k, product in enumerate(TASTE):
        first, rest = product.split(" ", 1)
        share = f"{100 * result.intervals()[product].low:.0f}–{100 * result.intervals()[product].high:.0f}%"
        for css, y, words in (("v f", SHARES, share), ("s a", FLOOR + 19, first), ("s a", FLOOR + 34, rest)):
            parts.append(text(css, k * COLUMN + 28, y, words))
    return "".join(parts) + f'<g transform="translate(0 {FLOOR})">{dots(answers)}</g></g>'


def style() -> str:
    """Return the style of the picture: every batch has its own time within one loop, and a column its own place."""
    frames = columns = ""
    for batch in range(VISITORS // BATCH):
        start = ARRIVE * batch * BATCH / VISITORS
        frames += (
            f"@keyframes b{batch}{{0%,{start:.1f}%{{opacity:0;transform:var(--from)}}{start + 0.6:.1f}%{{opacity:1}}"
            f"{start + FALL:.1f}%,{FADE}%{{opacity:1;transform:var(--at)}}"
            f"99%,to{{opacity:0;transform:var(--at)}}}}.b{batch}{{animation-name:b{batch}}}"
        )
    for k in range(len(TASTE)):
        place, entry = (
            f"translate({k * COLUMN}px,var(--y))",
            f"translate({178 + 22 * (k - 2.5):.0f}px,{SHARES - FLOOR}px)",
        )
        columns += f".c{k}{{--from:{entry};--at:{place};transform:var(--at)}}"
    return f"""<style>
.t {{ font-size: 21px }} .h {{ font-size: 18px }} .v {{ font-size: 13.5px }}
.t, .h, .v {{ font-weight: 700; fill: var(--ink) }} .s {{ font-size: 14px; fill: var(--soft) }}
.a {{ font-size: 12px }}
.g {{ stroke: var(--line) }} .n {{ stroke-opacity: .35 }}
.y, .n {{ stroke: var(--accent); stroke-width: 2.2px; stroke-linecap: round }} .k {{ stroke-width: 7px }}
.i {{ transform-origin: 0 {CENTRE}px }} .i, .p {{ fill: var(--accent) }} .even .i {{ fill: var(--warn) }}
.i, .y, .n, .f, .p {{ animation: {LOOP}s linear -{LOOP * (ARRIVE + FALL) / 100:g}s infinite }}
.f {{ animation-name: f }} .p {{ animation-name: p }}
@keyframes f {{ 0%, {ARRIVE}% {{ opacity: 0 }} {ARRIVE + FALL}%, {FADE}% {{ opacity: 1 }} 99%, to {{ opacity: 0 }} }}
@keyframes p {{ 0% {{ transform: scaleX(0) }} {ARRIVE}% {{ transform: none }} }}
{columns}{frames}
@media (prefers-reduced-motion: reduce) {{ * {{ animation: none !important }} }}
</style>"""


def drawing(width: int, height: int, right: int, down: int) -> str:
    """Draw both polls, the second to the right of the first one or below it, as on a phone."""
    headline = "3,000 visitors: which product to ask each of them about?" if right else "What to ask 3,000 visitors?"
    key = (
        f'<path class="y k" d="M{width - 174} 33h0"/><path class="n k" d="M{width - 94} 33h0"/>'
        f"{text('s', width - 164, 37, 'likes it', 'start')}{text('s', width - 84, 37, 'does not', 'start')}"
        if right
        else ""
    )
    panels = "".join(
        f'<g transform="translate({24 + right * k} {down * k})">{panel(name, *polls[name])}</g>'
        for k, name in enumerate(polls)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="3,000 visitors are asked about six products, evenly and by equipoise">{style()}'
        f'<clipPath id="strip"><path d="M0 {CENTRE - STRIP}h404v{2 * STRIP}H0z"/></clipPath>'
        f'<rect width="{width}" height="{height}" rx="12" fill="var(--card)"/>'
        f'<rect class="p" y="{height - 4}" width="{width}" height="4"/>{text("t", 24, 38, headline, "start")}'
        f"{key}{panels}</svg>"
    )


polls = {"even split": poll("uniform"), "equipoise": poll("auto")}
widest = {name: max(widths[-1]) for name, (_, widths, _) in polls.items()}
print(f"The widest interval: {widest['equipoise']:.0f} points instead of {widest['even split']:.0f} points.")
for name, width, height, right, down in (("visitors", 914, 394, 452, 0), ("visitors-phone", 460, 766, 0, 366)):
    picture.write(drawing(width, height, right, down), f"{name}.svg")
