"""Renders a drawing as a self-contained SVG image, light or dark by the viewer's preference.

Sizes without a reason of their own are ours, by eye.
"""

from xml.etree import ElementTree as ET

from control_api.answers.diagrams import Diagram, Shape

_STYLE = """
text { font: 11px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1f2528; }
.ground { fill: #ffffff; }
.lane { fill: #f7f6f2; stroke: #c9c6bc; } .lane.client { stroke: #235a60; }
.title { font: 600 13px system-ui, sans-serif; text-anchor: middle; }
.detail { font: 11px system-ui, sans-serif; text-anchor: middle; fill: #586268; }
.time { fill: #586268; }
line { stroke: #235a60; fill: none; }
.life { stroke: #dcdad2; } .answer { stroke-dasharray: 5 4; } .append, .marker { stroke: #1f6438; }
.refused { stroke: #9a2323; } line.refused:not(.head) { stroke-dasharray: 5 4; }
.head { stroke-width: 1.6; stroke-dasharray: none; }
.label { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-dasharray: none; }
text.refused, .reason { fill: #9a2323; } text.state { fill: #235a60; } text.fault, text.hold { fill: #744c00; }
text.append, text.marker { fill: #1f6438; } text.gap { fill: #586268; font-style: italic; }
.note { fill: #235a60; stroke: none; } .note.fault, .note.hold { fill: #744c00; } .note.gap { fill: #dcdad2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e6e4; } .ground { fill: #1c2124; } .lane { fill: #14181a; stroke: #4a5459; }
  .detail, .time, text.gap { fill: #a2acb0; } line, .lane.client { stroke: #8cc7c9; } .life { stroke: #333b3f; }
  .append, .marker { stroke: #97d6a7; } .refused { stroke: #f3a8a3; } .label { stroke: #1c2124; }
  text.refused, .reason { fill: #f3a8a3; } text.state, .note { fill: #8cc7c9; }
  text.append, text.marker { fill: #97d6a7; }
  text.fault, text.hold, .note.fault, .note.hold { fill: #eac57d; }
}
"""


def svg(diagram: Diagram) -> bytes:
    """Render the image as an SVG document."""
    size = {"width": str(diagram.width), "height": str(diagram.height)}
    root = ET.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {diagram.width} {diagram.height}", **size}
    )
    ET.SubElement(root, "title").text = diagram.title
    ET.SubElement(root, "style").text = _STYLE
    ET.SubElement(root, "rect", {"class": "ground", **size})
    for shape in diagram.shapes:
        _add(root, shape)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def _add(root: ET.Element, shape: Shape) -> None:
    named = {"class": shape.style}
    if shape.kind == "text":
        ET.SubElement(root, "text", {**named, "x": str(shape.x), "y": str(shape.y)}).text = shape.text
    elif shape.kind == "line":
        ends = {"x1": shape.x, "y1": shape.y, "x2": shape.x2, "y2": shape.y2}
        ET.SubElement(root, "line", {**named, **{name: str(value) for name, value in ends.items()}})
    else:
        size = {"x": shape.x, "y": shape.y, "width": shape.x2 - shape.x, "height": shape.y2 - shape.y}
        corners = {"rx": "4"}
        ET.SubElement(root, "rect", {**named, **{name: str(value) for name, value in size.items()}, **corners})
