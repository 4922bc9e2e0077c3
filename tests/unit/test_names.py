"""A name says one thing: no two public types of the layer share one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LAYER = Path(__file__).parents[2] / "layers/duetick/duetick"


def public_types() -> dict[str, list[str]]:
    """Return each public class and alias, with the modules that define it."""
    found = defaultdict(list)
    for path in sorted(LAYER.rglob("*.py")):
        if "skeleton" in path.parts:  # it is its owner's
            continue
        for name in types_of(ast.parse(path.read_text())):
            if not name.startswith("_"):
                found[name].append(str(path.relative_to(LAYER)))
    return found


def types_of(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        match statement:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()) if (
                name[0].isupper() and not name.isupper()
            ):
                yield name


def test_no_two_public_types_share_a_name() -> None:
    types = public_types()
    assert len(types) > 100
    assert {name: homes for name, homes in types.items() if len(homes) > 1} == {}
