"""axe-core looks in an opened page for what a screen reader or a keyboard cannot reach; `make axe` installs it."""

from __future__ import annotations

from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "view" / "node_modules" / "axe-core" / "axe.min.js"
MISSING = "axe-core is not installed: make axe"
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
_RUN = f"""
axe.run(document, {{runOnly: {list(_RULES)}, resultTypes: ["violations"]}}).then(found => found.violations.flatMap(
    rule => rule.nodes.slice(0, 5).map(node => [rule.id, node.target.join(" "), node.failureSummary, node.html])))
"""


def installed():
    return SCRIPT.exists()


def violations(browser):
    """What is wrong with the page: a line for each element, with the rule."""
    if not browser.run("typeof axe === 'object'"):
        browser.run(SCRIPT.read_text("utf-8") + "; 0")
    return [
        f"{rule} at {place}: {' '.join(about.split())} {html[:200]}" for rule, place, about, html in browser.run(_RUN)
    ]
