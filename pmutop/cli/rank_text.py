"""How a ranking looks: as text with bars, as JSON, and drawn as SVG."""

from __future__ import annotations

from html import escape

BAR = 30


def as_json(ranking, top: int) -> dict:
    """A ranking as plain values; importance in percent, errors as shares."""
    from pmutop.analysis.importance import one_to_three

    best = ranking.best
    return {
        "target": ranking.target,
        "error": ranking.best.error,
        "median_error": ranking.baseline,
        "unseen": ranking.unseen,
        "events": [
            {"event": name, "importance": round(float(share), 4), "paper": round(float(literal), 4)}
            for name, share, literal in zip(best.events[:top], best.importance, ranking.paper, strict=False)
        ],
        "agreement": round(ranking.agreement, 4) if ranking.agreement == ranking.agreement else None,
        "one_to_three": one_to_three(best.importance),
        "curve": [{"events": len(r.events), "error": r.error} for r in ranking.rounds],
    }


def as_pair(pair) -> dict:
    return {"first": pair.first, "second": pair.second, "share": round(pair.share, 4)}


def as_text(report: dict, ranking) -> list[str]:
    """The report as lines for a terminal."""
    lines = [f"{report['source']}: what matters to {report['target']}"]
    lines.append(
        f"error {report['error']:.1%} on {report['unseen']} unseen (always the median: {report['median_error']:.1%})"
    )
    most = max((event["importance"] for event in report["events"]), default=1) or 1
    wide = max((len(event["event"]) for event in report["events"]), default=0)
    for event in report["events"]:
        bar = "█" * round(BAR * event["importance"] / most)
        lines.append(f"  {event['event']:<{wide}} {event['importance']:5.1f} % {bar}")
    law = report["one_to_three"]
    lines.append(f"one to three events matter most: {f'yes, {law}' if law else 'no'}")
    if report["agreement"] is not None:
        lines.append(f"rank correlation of the two measures of importance: {report['agreement']:.2f}")
    lines.append("error as events are dropped:")
    worst = max(step["error"] for step in report["curve"]) or 1
    for step in report["curve"]:
        mark = " <- most accurate" if step["events"] == len(ranking.best.events) else ""
        lines.append(
            f"  {step['events']:>4} events {step['error']:6.1%} {'█' * round(BAR * step['error'] / worst)}{mark}"
        )
    for key, title in (
        ("interactions", "pairs that act together"),
        ("settings", "settings that act through an event"),
    ):
        if report.get(key):
            lines.append(f"{title} (on the model's own grid):")
            lines += [f"  {pair['share']:5.1f} % {pair['first']} x {pair['second']}" for pair in report[key]]
    if "against" in report:
        lines.append("events that rose:" if report["against"] else "no event rose")
        lines += [
            f"  {c['event']:<{wide}} x{c['factor']:.2f}, above in {c['surer']:.0%}" for c in report["against"]
        ]
    return lines


def as_svg(ranking, top: int) -> str:
    """The ranking as bars above the curve of the refinement."""
    best = ranking.best
    shown = list(zip(best.events[:top], best.importance[:top], strict=True))
    most = max((share for _, share in shown), default=1) or 1
    high = 22 * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{high + 260}" font-family="sans-serif" font-size="12">',
        f'<text x="10" y="18" font-size="14">What matters to {escape(ranking.target)}</text>',
    ]
    for at, (name, share) in enumerate(shown):
        y = 30 + 22 * at
        parts.append(f'<rect x="260" y="{y}" width="{380 * share / most:.1f}" height="16" fill="#3b7dd8"/>')
        parts.append(f'<text x="250" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<text x="{265 + 380 * share / most:.1f}" y="{y + 13}">{share:.1f} %</text>')
    counts, errors = [len(r.events) for r in ranking.rounds], [r.error for r in ranking.rounds]
    worst, widest, base = max(errors) or 1, max(max(counts) - min(counts), 1), high + 220
    points = [
        (60 + 600 * (max(counts) - count) / widest, base - 140 * error / worst)
        for count, error in zip(counts, errors, strict=True)
    ]
    parts.append(f'<text x="10" y="{base - 155}">error (of unseen slices) as events are dropped</text>')
    parts.append(
        f'<polyline fill="none" stroke="#d8643b" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
    )
    for (x, y), count, error in zip(points, counts, errors, strict=True):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{count} events: {error:.2%}</title></circle>'
        )
    for x, count in ((60, max(counts)), (660, min(counts))):
        parts.append(f'<text x="{x}" y="{base + 18}" text-anchor="middle">{count} events</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
