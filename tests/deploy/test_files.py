"""The deployment files: valid by their own checkers, safe, and agreed with each other and with our settings."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest
from compose_spec import PyCompose

from agent.settings import CairnSettings, load_settings
from tests.deploy.files import (
    COMPOSE,
    DEPLOY,
    KUBERNETES,
    PORT,
    ROOT,
    STORE_FOLDER,
    USER,
    compose,
    dockerfile,
    extras,
    kubernetes,
    stage,
    unit,
)

REPLICAS = "kubernetes-replicas"
PAGES = [DEPLOY / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("operations", "runs"))]


def loads(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read the settings in this environment; an unknown name or a wrong value raises."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        if name.startswith("CAIRN_"):
            monkeypatch.setenv(name, value)
    load_settings()


# The images


def test_the_linter_finds_nothing_in_the_dockerfile():
    hadolint = Path(sys.executable).with_name("hadolint")
    found = subprocess.run([hadolint, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_a_build_without_a_target_makes_the_cpu_image():
    assert dockerfile()[-1].name == "cpu"
    assert not any("vllm" in line for line in stage("cpu").all("RUN"))


@pytest.mark.parametrize("image", ["cpu", "gpu"])
def test_an_image_runs_without_root_and_is_probed_for_readiness(image: str):
    made = stage(image)
    assert made.last("USER") == f"{USER}:{USER}"
    assert any(f"--uid {USER}" in line for line in made.all("RUN"))
    assert f"http://127.0.0.1:{PORT}/readyz" in made.health_command[-1]
    assert made.last("EXPOSE") == made.environment["CAIRN_PORT"] == str(PORT)
    assert made.last("VOLUME") == STORE_FOLDER
    assert made.environment["CAIRN_STORE"].startswith(f"{STORE_FOLDER}/")
    assert made.environment["CAIRN_CACHE"].startswith(f"{STORE_FOLDER}/")


@pytest.mark.parametrize("image", ["cpu", "gpu"])
def test_every_setting_of_an_image_is_one(image: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    loads(stage(image).environment, monkeypatch, tmp_path)


@pytest.mark.parametrize("name", ["build", "build-gpu"])
def test_an_image_holds_what_its_settings_can_ask_for(name: str):
    there = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"redis", "postgres", "otel"} <= set(extras(name)) <= set(there)


def test_what_is_copied_is_there_and_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for line in stage("build").all("COPY"):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert name not in ignored


# Compose


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_a_compose_file_is_valid(path: Path):
    PyCompose.from_yaml(path.read_text(encoding="utf-8")).validate()


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_every_setting_of_a_compose_file_is_one(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    environment = compose(path)["services"]["cairn"]["environment"]
    filled = {
        name: re.sub(r"\$\{\w+:[-?][^}]*\}", "x" if ":?" in value else "", value) for name, value in environment.items()
    }
    loads(filled, monkeypatch, tmp_path)


def test_cairn_in_compose_cannot_write_but_to_its_volume():
    service = compose(DEPLOY / "compose.yaml")["services"]["cairn"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == [f"cairn:{STORE_FOLDER}"]
    assert service["build"]["target"] == "cpu"
    assert (DEPLOY / service["build"]["context"] / "Dockerfile").resolve() == ROOT / "Dockerfile"


@pytest.mark.parametrize("path", [path for path in COMPOSE if path.name != "compose.yaml"], ids=lambda path: path.stem)
def test_the_other_compose_files_start_the_same_cairn(path: Path):
    read = compose(path)
    assert read["services"]["cairn"]["extends"] == {"file": "compose.yaml", "service": "cairn"}
    assert "cairn" in read["volumes"]
    for name, service in read["services"].items():
        assert "image" in service or name == "cairn"
        assert all(other in read["services"] for other in service.get("depends_on", {}))


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_nothing_but_this_machine_is_served_and_no_secret_is_written_down(path: Path):
    for service in compose(path)["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for name, value in service.get("environment", {}).items():
            if name.endswith(("_KEY", "_SECRET")):
                assert value.startswith("${"), f"{name} is in {path.name}"


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_services_ask_each_other_at_ports_that_are_served(path: Path):
    services: dict[str, Any] = compose(path)["services"]
    served = {
        name: {str(port).rsplit(":", 1)[-1] for port in one.get("ports", []) + one.get("expose", [])}
        for name, one in services.items()
    }
    served["cairn"] = {str(PORT)}
    addresses = [
        re.match(r"\w+://(\w+):(\d+)", str(value))
        for one in services.values()
        for value in one.get("environment", {}).values()
    ]
    for found in filter(None, addresses):
        assert found[2] in served[found[1]], found[0]


def test_searxng_answers_in_json():
    assert "json" in compose(DEPLOY / "searxng.yml")["search"]["formats"]


def test_the_vllm_server_is_the_version_that_we_test():
    (pinned,) = re.findall(r'"vllm>=([\d.]+),', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert compose(DEPLOY / "compose.vllm.yaml")["services"]["vllm"]["image"].endswith(f":v{pinned}.0")


# Kubernetes


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_every_object_is_valid(path: Path):
    for made in kubernetes(path).values():
        kubernetes_validate.validate(made, "1.34", strict=True)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_every_setting_of_a_manifest_is_one(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    loads(kubernetes(path)["ConfigMap"]["data"], monkeypatch, tmp_path)


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_a_pod_runs_without_root_and_cannot_write_but_to_its_volumes(path: Path):
    pod = kubernetes(path)["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == USER
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {STORE_FOLDER, "/tmp"}
    assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_probes_ports_and_labels_agree(path: Path):
    made = kubernetes(path)
    template, service = made["Deployment"]["spec"]["template"], made["Service"]["spec"]
    (container,) = template["spec"]["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/readyz",
        "readiness": "/readyz",
        "liveness": "/healthz",
    }
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    assert (service["ports"][0]["port"], service["ports"][0]["targetPort"]) == (PORT, "http")
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    assert made["Deployment"]["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_the_services_own_variables_are_not_taken_for_settings(path: Path):
    """Kubernetes would add CAIRN_PORT=tcp://… for a service of this name."""
    assert kubernetes(path)["Deployment"]["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_several_replicas_share_no_file():
    for path in KUBERNETES:
        made = kubernetes(path)
        replicas, several = made["Deployment"]["spec"]["replicas"], path.stem == REPLICAS
        assert (replicas > 1) == several
        assert ("PersistentVolumeClaim" in made) == (not several)
        assert several or made["Deployment"]["spec"]["strategy"]["type"] == "Recreate"


def test_a_server_is_given_time_to_end_its_runs():
    settings = load_settings()
    for path in KUBERNETES:
        made = kubernetes(path)
        grace = float(made["ConfigMap"]["data"]["CAIRN_GRACE_SECONDS"]) + settings.grace_answer_seconds
        assert made["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace
    grace = settings.grace_seconds + settings.grace_answer_seconds
    assert float(unit()["TimeoutStopSec"][0]) > grace
    assert float(compose(DEPLOY / "compose.yaml")["services"]["cairn"]["stop_grace_period"].rstrip("s")) > grace


# systemd


def test_every_setting_of_the_unit_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    environment = dict(line.split("=", 1) for line in unit()["Environment"])
    loads(environment, monkeypatch, tmp_path)
    assert environment["CAIRN_STORE"].startswith(f"{STORE_FOLDER}/")
    assert environment["CAIRN_PORT"] == str(PORT)


def test_the_unit_may_write_its_state_and_nothing_else():
    lines = unit()
    assert lines["StateDirectory"] == [Path(STORE_FOLDER).name]
    assert lines["ProtectSystem"] == ["strict"]
    assert lines["DynamicUser"] == lines["NoNewPrivileges"] == ["yes"]
    assert lines["ExecStart"] == [f"/opt/cairn/bin/{' '.join(stage('cpu').command)}"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path):
    text = (DEPLOY / "cairn.service").read_text(encoding="utf-8")
    here = tmp_path / "cairn.service"
    here.write_text(text.replace("/opt/cairn/bin/cairn serve", f"{sys.executable} serve"), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


# What the pages say of them


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_setting_that_is_named_is_one(path: Path):
    text = path.read_text(encoding="utf-8")
    named = {name.lower().partition("__")[0] for name in re.findall(r"\bCAIRN_([A-Z][A-Z_]*[A-Z])\b", text)}
    named |= {name for cell in first_cells(text) for name in re.findall(r"`(\w+)`", cell)}
    assert named
    assert named - set(CairnSettings.model_fields) == set()


def first_cells(text: str) -> list[str]:
    """Of the tables of settings."""
    blocks = re.findall(r"^\| setting .*\n\|[-| ]+\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    return [line.split("|")[1] for block in blocks for line in block.splitlines()]
