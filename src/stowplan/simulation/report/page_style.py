"""The style of the page: light and dark, narrow and wide, and on paper, which is always light.

c1 … c8 are lines, f0 … f6 areas of causes, h0 … h5 how full nodes are. The colours of lines and areas are those of
Okabe and Ito, which people with any kind of colour blindness can tell apart; lines are dashed differently, too. The
colours of nodes get steadily darker (on dark: brighter), so that they can be told apart in grey.
"""

LIGHT = """
  --paper: #ffffff; --ink: #1b2430; --soft: #566273; --line: #c9d1db; --tile: #f3f6f9;
  --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #a8559a; --c5: #b07d00; --c6: #3a9bd0; --c7: #6b4fbb;
  --c8: #555555;
  --f0: #b4bcc6; --f1: #0072b2; --f2: #e69f00; --f3: #009e73; --f4: #cc79a7; --f5: #d55e00; --f6: #56b4e9;
  --h0: #f4f7fa; --h1: #cfe3f2; --h2: #93c1e0; --h3: #4f97c9; --h4: #1f66a5; --h5: #08305f;
  --added: #e2f4e8; --removed: #fbe6e2;
"""
DARK = """
  --paper: #12171e; --ink: #e6ebf1; --soft: #a3afbd; --line: #3a4552; --tile: #1b222c;
  --c1: #56b4e9; --c2: #ff8a4c; --c3: #2fc79a; --c4: #e39bc8; --c5: #f0c04d; --c6: #8fd0ff; --c7: #b9a3ff;
  --c8: #c8c8c8;
  --f0: #6c7887; --f1: #2f8fd0; --f2: #e69f00; --f3: #17a97e; --f4: #cc79a7; --f5: #e0692a; --f6: #7cc6f2;
  --h0: #1b222c; --h1: #1d3b57; --h2: #235f8d; --h3: #3389bd; --h4: #6cbbe3; --h5: #d8f1ff;
  --added: #123524; --removed: #43201b;
"""
LINES = "\n".join(
    f".line.c{each} {{ stroke: var(--c{each}); }} .dot.c{each} {{ fill: var(--c{each}); }}" for each in range(1, 9)
)
STYLE = f"""\
:root {{ color-scheme: light dark; {LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 1120px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }}
h1 {{ font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.25rem; margin: 2.25rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }}
h3 {{ font-size: 1rem; margin: 1.25rem 0 .5rem; }}
p {{ margin: .25rem 0 .75rem; max-width: 48rem; }}
.intro, .note, small, .said {{ color: var(--soft); }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .75rem; margin: 1rem 0 0;
  padding: 0; }}
.tiles div {{ background: var(--tile); border-radius: .5rem; padding: .6rem .8rem; }}
.tiles dt {{ color: var(--soft); font-size: .85rem; line-height: 1.3; }}
.tiles dd {{ margin: .15rem 0 0; font-size: 1.4rem; font-weight: 600; line-height: 1.25;
  overflow-wrap: anywhere; }}
.tiles dd small {{ display: block; font-size: .85rem; font-weight: 400; }}
.plots, .maps {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.25rem 1.5rem; }}
.beside {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem 1.5rem; align-items: center;
  margin-bottom: 1rem; }}
figure {{ margin: 0; min-width: 0; }}
figcaption {{ font-weight: 600; margin-bottom: .25rem; overflow-wrap: anywhere; }}
.plot svg {{ display: block; width: 100%; height: auto; }}
svg text {{ font-size: 13px; fill: var(--ink); }}
svg .mark, svg .title {{ fill: var(--soft); font-size: 12.5px; }}
.grid {{ stroke: var(--line); stroke-width: 1; opacity: .7; }}
.axis {{ stroke: var(--soft); stroke-width: 1; fill: none; }}
.lead {{ stroke: var(--line); stroke-width: 1; fill: none; }}
.line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.area {{ stroke: var(--paper); stroke-width: .6; }}
.dot {{ stroke: none; }}
{LINES}
.line.c2 {{ stroke-dasharray: 8 3; }} .line.c3 {{ stroke-dasharray: 3 2; }} .line.c4 {{ stroke-dasharray: 10 3 2 3; }}
.line.c6 {{ stroke-dasharray: 6 4; }} .line.c7 {{ stroke-dasharray: 2 4; }}
.line.c8 {{ stroke-dasharray: 12 3 2 3 2 3; }}
{"".join(f".f{each} {{ fill: var(--f{each}); }} " for each in range(7))}
{"".join(f".h{each} {{ fill: var(--h{each}); }} " for each in range(6))}
.none {{ fill: var(--paper); }}
.key {{ width: .8rem; height: .8rem; vertical-align: -.05rem; outline: 1px solid var(--line); }}
.line-key {{ width: 1.2rem; outline: none; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; margin: .5rem 0; padding: 0;
  font-size: .875rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .925rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }}
th:first-child {{ text-align: left; }}
tbody th {{ font-weight: 400; overflow-wrap: anywhere; }}
thead th {{ vertical-align: bottom; }}
.figures td, .figures thead th {{ min-width: 7rem; padding-left: .75rem; }}
.figures thead th {{ max-width: 14rem; overflow-wrap: anywhere; }} .figures thead th:first-child {{ padding-left: 0; }}
.fact {{ overflow-wrap: anywhere; }}
.top {{ align-items: start; }}
.controls {{ display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; }}
.controls[hidden] {{ display: none; }}
.controls input {{ flex: 1 1 14rem; min-width: 8rem; accent-color: var(--c1); }}
.controls select, .controls button {{ font: inherit; color: inherit; background: var(--tile);
  border: 1px solid var(--line);
  border-radius: .35rem; padding: .2rem .6rem; max-width: 100%; }}
:focus-visible {{ outline: 2px solid var(--c1); outline-offset: 2px; }}
.moment {{ font-size: 1.1rem; font-weight: 600; margin: .5rem 0 0; font-variant-numeric: tabular-nums; }}
canvas {{ display: block; width: 100%; height: auto; }}
.said {{ font-size: .9rem; margin: .35rem 0 .75rem; overflow-wrap: anywhere; }}
pre {{ background: var(--tile); border-radius: .5rem; padding: .75rem 1rem; overflow-x: auto; font-size: .85rem;
  line-height: 1.45; }}
pre span {{ display: inline-block; min-width: 100%; }}
.added {{ background: var(--added); }} .removed {{ background: var(--removed); }} .place {{ color: var(--soft); }}
summary {{ cursor: pointer; }}
dl.words dt {{ font-weight: 600; }} dl.words dd {{ margin: 0 0 .5rem; max-width: 48rem; }}
@media (max-width: 760px) {{
  .plots, .maps, .beside {{ grid-template-columns: minmax(0, 1fr); }}
  .figures td, .figures thead th {{ min-width: 5.5rem; }}
  svg text, svg .mark, svg .title {{ font-size: 15px; }}
}}
@media print {{
  @page {{ margin: 14mm; }}
  body {{ max-width: none; padding: 0; font-size: 10.5pt; }}
  .controls {{ display: none; }}
  .plots, .maps, .beside {{ grid-template-columns: repeat(2, minmax(0, 1fr)); }}
  table, pre {{ font-size: 8.5pt; }}
  h2, h3, h2 + p, .legend, .moment {{ break-after: avoid; }}
  figure, tr, .tiles div, .beside, dl.words div {{ break-inside: avoid; }}
  .wide, pre {{ overflow: visible; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
  canvas, svg, .tiles div, .added, .removed {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""
