"""Checks the chart without a cluster: renders it, compares with goldens/, and checks these and the objects of `submit --k8s` against
the schemas of Kubernetes. `cargo xtask manifests` runs it; with --bless it writes the goldens anew.
"""

import copy
import pathlib
import sys

import helm_python
import kubernetes_validate
import yaml

FOLDER = pathlib.Path(__file__).parent
CHART = FOLDER / "seraphim"
# The oldest version that the chart takes has the same objects as the newest.
VERSIONS = ["1.27", "1.35"]
# A value that the schema of values must refuse, and a piece of the message.
BAD_VALUES = [
    (("server", "replicas"), "two", "got string, want integer"),
    (("server", "replicas"), 0, "minimum: got 0, want 1"),
    (("server", "replica"), 2, "additional properties 'replica' not allowed"),
    (("master", "persistence", "size"), "10Gb", "does not match pattern"),
    (("server", "memoryLimit"), "lots", "does not match pattern"),
]


def documents(text):
    """The objects of a file, by kind and name."""
    found = [document for document in yaml.safe_load_all(text) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def rendered(values):
    chart = helm_python.Chart.load(str(CHART))
    texts = chart.render(values, name="r", namespace="ns")
    return "\n---\n".join(text for path, text in sorted(texts.items()) if path.endswith(".yaml"))


def check_golden(values_file, bless):
    values = yaml.safe_load(values_file.read_text())
    report = helm_python.lint(str(CHART), values, strict=True, namespace="ns")
    # An icon is recommended, and there is none.
    problems = [message for message in report["messages"] if message["severity"] >= 2]
    assert not problems and not report["errors"], f"lint of {values_file.name}: {problems} {report['errors']}"
    golden = values_file.with_name(values_file.name.replace(".values", ""))
    present = documents(rendered(values))
    if bless:
        golden.write_text(yaml.safe_dump_all(present.values(), sort_keys=False, width=120))
    expected = documents(golden.read_text())
    for key in sorted(present.keys() | expected.keys()):
        assert present.get(key) == expected.get(key), f"{key} is not as in {golden}: look at it, and write it anew with --bless"
    return golden


def check_schemas(file):
    for document in documents(file.read_text()).values():
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)


def check_bad_values():
    plain = yaml.safe_load((FOLDER / "goldens/default.values.yaml").read_text())
    for path, value, piece in BAD_VALUES:
        values = copy.deepcopy(plain)
        place = values
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
        chart = helm_python.Chart.load(str(CHART))
        try:
            chart.validate_schema(chart.merge_values(values))
        except helm_python.HelmError as error:
            assert piece in str(error), f"{path} = {value!r}: {error}"
        else:
            raise AssertionError(f"{path} = {value!r} is taken")


def main():
    files = [check_golden(file, "--bless" in sys.argv) for file in sorted(FOLDER.glob("goldens/*.values.yaml"))]
    files.append(FOLDER.parents[1] / "crates/kubernetes/goldens/job.yaml")
    for file in files:
        check_schemas(file)
    check_bad_values()
    print(f"{len(files)} files of manifests are valid for Kubernetes {' and '.join(VERSIONS)}")


main()
