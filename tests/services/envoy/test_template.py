"""Templates: values, and sections that are left out or repeated."""

import pytest
import yaml

from services.envoy.template import render


def test_values_are_written_as_yaml():
    values = {"text": 'a: "b" # é', "whole": 3, "half": 2.5, "large": 1e7, "right": True}
    template = "".join(f"{name}: ${name}\n" for name in values) + "wait: ${half}s\n"
    assert yaml.safe_load(render(template, values)) == {**values, "wait": "2.5s"}


def test_a_value_is_not_a_template():
    assert render("$a\n", {"a": "$b", "b": "x"}) == '"$b"\n'


def test_sections_are_left_out_or_repeated():
    template = """
#if shown
shown:
    #for items
    - $name $number
        #if shown
    - nested
        #end
    #end
#end
end
"""
    items = [{"name": 1}, {"name": 2, "number": 8}]
    assert render(template, {"shown": True, "number": 7, "items": items}) == (
        "\nshown:\n    - 1 7\n    - nested\n    - 2 8\n    - nested\nend\n"
    )
    assert render(template, {"shown": "", "number": 7, "items": items}) == "\nend\n"
    assert "-" not in render(template, {"shown": True, "number": 7, "items": []})


def test_a_mistake_in_a_template_raises():
    with pytest.raises(KeyError):
        render("$missing\n", {})
    with pytest.raises(ValueError, match="line 2"):
        render("a\n#if a\n", {"a": True})
