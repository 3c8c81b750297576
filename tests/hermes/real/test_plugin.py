"""The plugin in the real Hermes: found, enabled, its tools dispatched, its commands and skills there."""

from __future__ import annotations

import json

from tests.hermes.real.client import Client

from hermes_workflows.hermes_plugin.offers import METHODS, TOOLS


def _listed(client: Client) -> dict[str, str]:
    listed = json.loads(client.hermes("plugins", "list", "--json", "--no-bundled").stdout)
    return {each["name"]: each["status"] for each in listed}


def test_hermes_lists_the_plugin_as_enabled(client: Client) -> None:
    assert _listed(client) == {"hermes-workflows": "enabled"}


def test_hermes_loads_it_without_an_error_and_credits_it_with_its_parts(client: Client) -> None:
    script = "found = manager._plugins['hermes-workflows']\n"
    names = "found.error, found.enabled, found.tools_registered, found.commands_registered, found.hooks_registered"
    error, enabled, tools, commands, hooks = client.script(f"{script}print(json.dumps([{names}]))")
    assert (error, enabled) == (None, True)
    assert set(tools) == {tool.name for tool in TOOLS}
    assert commands == ["workflow"]
    assert hooks == ["pre_gateway_dispatch"]


def test_hermes_loads_the_folder_alone_where_no_package_announces_itself(client: Client) -> None:
    hide = "import importlib.metadata as m; m.entry_points = lambda **_: []\n"
    again = "manager.discover_and_load(force=True); found = manager._plugins['hermes-workflows']\n"
    said = client.script(f"{hide}{again}print(json.dumps([found.error, found.manifest.source, found.enabled]))")
    assert said == [None, "user", True]


def test_every_method_that_the_plugin_asks_for_is_in_this_hermes(client: Client) -> None:
    script = "from hermes_cli.plugins import PluginContext\n"
    there = client.script(f"{script}print(json.dumps([m for m in {METHODS!r} if hasattr(PluginContext, m)]))")
    assert there == list(METHODS)
    found = client.work.run("hermes", "doctor").json
    assert found["ok"], found


def test_a_tool_starts_a_run_and_others_show_it(client: Client) -> None:
    started = client.dispatch("workflow_start", workflow="launch", input_json='{"topic": "docs"}', run_id="one")
    assert started["workflow_id"] == "one"
    client.work.work()
    assert client.dispatch("workflow_status", run="one")["state"] == "waiting"
    (receipt,) = client.dispatch("workflow_receipt", run="one", key="writer")["receipts"]
    assert receipt["output"] == "Draft of docs"
    assert [row["key"] for row in client.dispatch("workflow_reviews")] == ["review_draft"]
    assert client.dispatch("workflow_list")[0]["workflow"] == "launch"


def test_a_project_whose_modules_are_called_like_hermes_own_gets_its_own_and_hermes_keeps_its(client: Client) -> None:
    flow = client.work.root / "flows" / "launch.py"
    flow.write_text("from utils import TOPIC\n" + flow.read_text() + "\nassert TOPIC\n")
    (client.work.root / "flows" / "utils.py").write_text("TOPIC = 'ours'\n")
    script = "import utils; from tools.registry import registry\n"
    call = "registry.dispatch('workflow_start', {'workflow': 'launch', 'input_json': '{\"topic\": \"x\"}'})"
    said, kept = client.script(f"{script}said = {call}\nprint(json.dumps([said, sys.modules['utils'] is utils]))")
    assert "workflow_id" in json.loads(said), said
    assert kept


def test_the_model_has_no_tool_that_answers(client: Client) -> None:
    answer = client.dispatch("workflow_answer", run="one", key="review_draft", answer_json='{"action": "approve"}')
    assert "Unknown tool" in answer["error"]


def test_the_model_is_offered_the_tools_with_their_schemas(client: Client) -> None:
    script = "from tools.registry import registry\n"
    wanted = [tool.name for tool in TOOLS]
    schemas = client.script(f"{script}print(json.dumps([registry.get_schema(name) for name in {wanted!r}]))")
    assert schemas == [tool.schema for tool in TOOLS]


def test_the_chat_command_answers_as_hermes_calls_it(client: Client) -> None:
    script = "from hermes_cli.plugins import get_plugin_command_handler, resolve_plugin_command_result\n"
    call = "resolve_plugin_command_result(get_plugin_command_handler('workflow')('list'))"
    assert "launch" in client.script(f"{script}print(json.dumps({call}))")


def test_an_answer_typed_in_a_chat_that_names_nobody_is_not_taken(client: Client) -> None:
    client.work.start("one")
    client.work.work()
    script = "from hermes_cli.plugins import get_plugin_command_handler\n"
    call = "get_plugin_command_handler('workflow')('answer one review_draft approve')"
    assert "no answer is taken" in client.script(f"{script}print(json.dumps({call}))")
    assert client.work.run("review", "show", "one", "review_draft").json["status"] == "open"


def test_hermes_command_line_is_ours_with_its_options_and_exit_codes(client: Client) -> None:
    done = client.hermes("workflows", "run", "launch", "--id", "one", "--input-json", '{"topic": "x"}', "--drain")
    assert (done.code, done.json["status"]) == (3, "waiting")
    assert client.hermes("workflows", "status", "nothing").error["code"] == "not_found"
    assert "--input-json" in client.hermes("workflows", "help", "run").stdout
    assert client.hermes("workflows", "help").stdout == client.hermes("workflows").stdout


def test_hermes_command_line_means_its_workspace_when_it_stands_in_none(client: Client) -> None:
    client.work.start("one")
    assert client.hermes("workflows", "status", "one", cwd=client.home).json["workflow_id"] == "one"


def test_the_skills_are_found_by_their_names(client: Client) -> None:
    for name in ("running-workflows", "writing-workflows"):
        script = f"from tools.skills_tool import skill_view\nprint(skill_view('hermes-workflows:{name}'))"
        found = client.script(script)
        assert found["success"], found
        assert "hermes-workflows run" in found["content"]


def test_uninstalled_hermes_knows_nothing_of_it_and_its_folder_is_as_before(client: Client) -> None:
    assert client.hermes("plugins", "list", "--json").code == 0
    assert client.work.run("hermes", "uninstall").code == 0
    assert not (client.home / "plugins" / "hermes-workflows").exists()
    assert not (client.home / "config.yaml").exists() or "hermes-workflows" not in (
        client.home / "config.yaml"
    ).read_text(encoding="utf-8")
    # The package still announces itself; nobody has enabled it.
    assert _listed(client) == {"hermes-workflows": "not enabled"}


def test_hermes_own_way_to_enable_is_undone_too(client: Client) -> None:
    assert client.hermes("plugins", "disable", "hermes-workflows").code == 0
    assert client.work.run("hermes", "install").json["enabled"] is False
    assert client.hermes("plugins", "enable", "hermes-workflows", "--no-allow-tool-override").code == 0
    assert client.work.run("hermes", "uninstall").code == 0
    assert _listed(client) == {"hermes-workflows": "not enabled"}
