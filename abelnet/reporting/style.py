"""Style of report pages: light and dark, from phones to paper."""

from __future__ import annotations

__all__ = ["STYLE"]

from abelnet.reporting.charts import CHART_STYLE

STYLE = (
    """
:root { color-scheme: light dark; --page: #fff; --text: #1d2329; --muted: #565f69; --line: #dde1e6; --box: #f5f6f8;
  --accent: #0b5cad; --best: #e3efff }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --text: #e4e8ec; --muted: #a4adb8; --line: #323942;
  --box: #1d2128; --accent: #6cb2ff; --best: #1c3a5c } }
* { box-sizing: border-box }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100% }
body { font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--text); background: var(--page);
  max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; overflow-wrap: break-word }
h1 { font-size: clamp(1.7rem, 4.5vw, 2.4rem); line-height: 1.15; letter-spacing: -.02em; margin: 0 0 1rem }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -.01em; margin: 0 0 .75rem }
p, ul, nav { max-width: 44rem }
p { margin: 0 0 .9rem }
a { color: var(--accent); text-underline-offset: .15em }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 2rem }
nav ol { margin: 1.5rem 0 0; padding-left: 1.4rem; columns: 18rem 2; column-gap: 2rem }
nav li { break-inside: avoid; padding: .1rem 0 }
.scroll { overflow-x: auto; margin: 1.5rem 0 .5rem }
table { border-collapse: collapse; font-size: .925rem; line-height: 1.4; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; font-size: 1rem; padding: 0 0 .5rem }
caption span { display: block; width: fit-content; max-width: calc(100vw - 2.5rem); position: sticky; left: 0 }
th, td { border-bottom: 1px solid var(--line); padding: .35rem 1.1rem .35rem 0; text-align: left; white-space: nowrap;
  vertical-align: baseline }
th { font-weight: 400 }
thead th { color: var(--muted); vertical-align: bottom; font-size: .85rem }
th:last-child, td:last-child { padding-right: .25rem }
.right { text-align: right }
td strong, th strong { background: var(--best); border-radius: .25rem; padding: .1rem .3rem; margin: 0 -.3rem }
.notes { color: var(--muted); font-size: .875rem; margin: 0 0 1.5rem; padding: 0; list-style: none }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 2.25rem 2.5rem;
  margin: 1.75rem 0 }
figure { margin: 0 }
img { display: block; max-width: 100%; height: auto; background: #fff }
.formula { margin: 1rem 0; padding: 1rem 1.25rem; background: var(--box); border-radius: .5rem; font-size: 1.3rem }
math { display: block math; text-align: left; margin: 0 }
dl { margin: 1rem 0 0; max-width: 52rem }
dl div { display: grid; grid-template-columns: 11rem 1fr; gap: 0 1.5rem; border-bottom: 1px solid var(--line);
  padding: .4rem 0 }
dt { color: var(--muted) }
dd { margin: 0; min-width: 0 }
pre, code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875rem }
pre { background: var(--box); border-radius: .5rem; padding: 1rem 1.25rem; margin: 1rem 0; white-space: pre-wrap }
code { background: var(--box); border-radius: .25rem; padding: .1rem .35rem }
details { margin: 1rem 0 }
summary { cursor: pointer; color: var(--accent); font-weight: 600 }
.made, footer { color: var(--muted); font-size: .875rem }
.made { margin: 1.25rem 0 0; max-width: none }
.made code { display: inline-block; max-width: 100% }
footer { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem }
@media (max-width: 40rem) { body { padding-top: 1.5rem }
  dl div { grid-template-columns: 1fr; gap: 0 } .formula { font-size: 1.1rem } }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
@media print { :root { --page: #fff; --text: #000; --muted: #444; --line: #bbb; --box: #f3f3f3; --accent: #000;
  --best: #e8e8e8; color-scheme: light }
  body { max-width: none; padding: 0; font-size: 10pt } nav { display: none }
  h2 { break-after: avoid } figure, tr, dl div, pre { break-inside: avoid } .scroll { overflow: visible }
  table { font-size: 7.5pt } thead th { font-size: 7pt } th, td { padding-right: .6rem }
  td strong, th strong { padding: .1rem .15rem; margin: 0 -.15rem }
  .figures { grid-template-columns: 1fr 1fr; gap: 1.5rem }
  details::details-content { content-visibility: visible; block-size: auto } }
"""
    + CHART_STYLE
)
"""Style sheet of a page. The colors of text on its background have a contrast of at least 4.5 to 1, light and dark."""
