"""
3,000 visitors find their products: an animation of one poll, asked evenly and asked by equipoise.

Every dot is a visitor who is asked about one product, dark for a yes and pale for a no. Under an even split all columns
grow alike, and the interval of the product that divides opinion stays wide. equipoise grows the columns until all
intervals are about as wide.
"""

from itertools import groupby
from random import Random

import picture

import equipoise as eq

TASTE = {"chilli chocolate": 0.97, "oat ice cream": 0.90, "cardamom coffee": 0.52, "seaweed crisps": 0.31,
         "beet lemonade": 0.08, "salted liquorice": 0.04}  # fmt: skip
VISITORS, BATCH, LOOP = 3000, 50, 16  # visitors in all, visitors that move together, seconds of one loop
ARRIVE, FALL, FADE = 78, 3, 96  # percent of the loop: the last batch sets out; a fall takes; the end begins
ACROSS, PITCH, COLUMN = 14, 3.4, 68  # dots in a row of a column, pixels between dots, pixels between columns
TOP, SCALE, FLOOR = 96, 150, 548  # pixels: where a share of 100% is, the height of 100%, the foot of the columns


def poll(strategy: str) -> tuple[list[tuple[str, bool]], list[dict[str, tuple[float, float]]]]:
    """Ask every visitor about one product; return the answers, and the intervals after every batch."""
    study = eq.Study(TASTE, budget=VISITORS, strategy=strategy, support="binary")
    opinions = {product: Random(f"{product} 4") for product in TASTE}
    answers, intervals = [], []
    while not study.done:
        ticket = study.ask()
        answers.append((ticket.arm, opinions[ticket.arm].random() < TASTE[ticket.arm]))
        study.tell(ticket, answers[-1][1])
        if len(answers) % BATCH == 0:
            found = study.result().intervals()
            intervals.append({product: (found[product].low, found[product].high) for product in TASTE})
    return answers, intervals


def dots(answers: list[tuple[str, bool]]) -> str:
    """Draw the visitors of each batch, product and answer as one path of round dots."""
    asked, drawn = dict.fromkeys(TASTE, 0), []
    for batch in range(0, VISITORS, BATCH):
        for (product, yes), group in groupby(sorted(answers[batch : batch + BATCH]), key=lambda answer: answer):
            path = ""
            for _ in group:
                row, place = divmod(asked[product], ACROSS)
                path += f"M{place * PITCH:.1f} {-row * PITCH:.1f}h0"
                asked[product] += 1
            column = list(TASTE).index(product)
            drawn.append(f'<path class="{"yn"[not yes]} c{column} b{batch // BATCH}" d="{path}"/>')
    return "".join(drawn)


def panel(name: str, left: int, answers: list[tuple[str, bool]], intervals: list[dict[str, tuple[float, float]]]) -> str:
    """Draw a poll: its headline, six intervals above, six columns of dots below, and the keyframes of the intervals."""
    ours, half = name == "equipoise", max(high - low for low, high in intervals[-1].values()) / 2
    parts = [f'<g transform="translate({left} 0)"><text class="h" y="66">{name}</text>']
    parts.append(f'<text class="s" x="404" y="66" text-anchor="end">widest interval ±{half:.1%}</text>')
    for share in (0, 0.5, 1):
        parts.append(f'<path class="g" d="M0 {TOP + SCALE * (1 - share):.0f}h404"/>')
    for k, product in enumerate(TASTE):
        ends = [(TOP + SCALE * (1 - step[product][1]), TOP + SCALE * (1 - step[product][0])) for step in intervals]
        top, foot = ends[-1]
        steps = [f"0%{{transform:translateY({TOP - top:.0f}px)scaleY({SCALE / (foot - top):.2f})}}"]
        for batch in range(0, len(ends), 2):
            high, low = ends[batch]
            time = FALL + ARRIVE * batch / len(ends)
            steps.append(f"{time:.1f}%{{transform:translateY({high - top:.1f}px)scaleY({(low - high) / (foot - top):.2f})}}")
        steps.append(f"{ARRIVE + FALL}%,100%{{transform:none}}")
        parts.append(f"<style>@keyframes i{k}{'eo'[ours]}{{{''.join(steps)}}}</style>")
        parts.append(
            f'<rect class="i {"eo"[ours]}" x="{k * COLUMN + 16}" y="{top:.1f}" width="13" height="{foot - top:.1f}" rx="6" '
            f'style="animation-name:i{k}{"eo"[ours]};transform-origin:0 {top:.1f}px"/>'
        )
        first, rest = product.split(" ", 1)
        for line, word in enumerate((first, rest)):
            parts.append(f'<text class="s" x="{k * COLUMN + 22}" y="{FLOOR + 20 + 15 * line}" text-anchor="middle">{word}</text>')
    return "".join(parts) + f'<g transform="translate(0 {FLOOR})">{dots(answers)}</g></g>'


polls = {"even split": poll("uniform"), "equipoise": poll("auto")}
widths = {name: [high - low for low, high in intervals[-1].values()] for name, (_, intervals) in polls.items()}
print(f"Widest interval: ±{max(widths['equipoise']) / 2:.1%} with equipoise, ±{max(widths['even split']) / 2:.1%} evenly.")

batches = VISITORS // BATCH
frames = "".join(
    f"@keyframes b{b}{{0%,{ARRIVE * b / batches:.1f}%{{opacity:0;transform:var(--from)}}"
    f"{ARRIVE * b / batches + 0.6:.1f}%{{opacity:1}}{ARRIVE * b / batches + FALL:.1f}%,{FADE}%{{opacity:1;transform:var(--at)}}"
    f"99%,to{{opacity:0;transform:var(--at)}}}}.b{b}{{animation-name:b{b}}}"
    for b in range(batches)
)
columns = "".join(
    f".c{k}{{--at:translate({k * COLUMN}px,0);--from:translate({180 - 20 * (2.5 - k):.0f}px,-{FLOOR - 268}px);transform:var(--at)}}"
    for k in range(len(TASTE))
)
style = f"""<style>
.h {{ font-size: 15px; font-weight: 700; fill: var(--ink) }} .s {{ font-size: 12px; fill: var(--soft) }}
.t {{ font-size: 19px; font-weight: 700; fill: var(--ink) }} .g {{ stroke: var(--line) }}
.y, .n {{ stroke-width: 2.9px; stroke-linecap: round }} .y {{ stroke: var(--accent) }} .n {{ stroke: var(--accent); stroke-opacity: .38 }}
.e {{ fill: var(--soft) }} .o {{ fill: var(--accent) }}
.i, .y, .n {{ animation: {LOOP}s linear infinite }}
{columns}{frames}
@media (prefers-reduced-motion: reduce) {{ * {{ animation: none !important }} }}
</style>"""
body = "".join(panel(name, 24 + 448 * k, *polls[name]) for k, name in enumerate(polls))
picture.write(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 596" width="900" height="596" role="img" '
    'aria-label="3,000 visitors are asked about six products, evenly and by equipoise">'
    f'{style}<rect width="900" height="596" rx="12" fill="var(--card)"/>'
    f'<text class="t" x="24" y="36">3,000 visitors, six products: whom to ask about what?</text>{body}</svg>',
    "visitors.svg",
)
