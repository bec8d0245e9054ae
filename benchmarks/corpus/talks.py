"""Conversations of agents with simulated customers, from the results of tau-bench, tau2-bench and two forks.

The results lie in the heads of pull requests, which `git clone --mirror` fetches. `talks.txt` lists the files
by their ids. Half of the conversations is taken, chosen by a hash of their messages. The tools are what the
benchmarks' own code declares; it runs in a process of its own.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpus.clones import Clone

FILES = Path(__file__).with_suffix(".txt")
DECLARING = ("sierra-research/tau-bench", "sierra-research/tau2-bench")  # whose code declares the tools
# One fork names its worlds after the people who wrote them. These words of such names are no person's.
KINDS = frozenset(
    (
        "divemotor",
        "sales",
        "support",
        "estaciondeservicio",
        "cable",
        "filtro",
        "fishtrader",
        "salud",
        "rag",
        "lista",
        "sanita",
        "academico",
        "hotel",
        "ecommerce",
        "convalidacionclcs",
        "healthcare",
        "restaurante",
        "retail",
        "enosa",
    )
)
OTHER_HALF = "cf650996c4f2"  # an answer of our half that first stands in a conversation of the other
INSTRUCTION = """\
You are a customer service agent that helps the user according to the <policy> provided below.
In each turn you can either:
- Send a message to the user.
- Make a tool call.
You cannot do both at the same time.

Try to be helpful and always follow the policy. Always make sure you generate valid JSON only."""
SYSTEM = "<instructions>\n{}\n</instructions>\n<policy>\n{}\n</policy>"
DECLARATIONS = r"""
import glob, importlib, json, sys, types
from unittest.mock import MagicMock
root, out = sys.argv[1:]
sys.path[:0] = [root, root + "/src"]
for name in ("addict", "deepdiff", "loguru", "toml"):  # imported there, and not needed to declare
    sys.modules[name] = MagicMock()
found = {}
for world in ("airline", "retail"):
    try: module = importlib.import_module(f"tau_bench.envs.{world}.tools")
    except ImportError: continue
    found[world] = [tool.get_info() for tool in module.ALL_TOOLS]
def package(name):
    module = types.ModuleType(name)
    module.__path__ = [root + "/src/" + name.replace(".", "/")]
    sys.modules.setdefault(name, module)
for file in sorted(glob.glob(root + "/src/tau2/domains/*/tools.py")):
    domain = file.split("/")[-2]
    for name in ("tau2", "tau2.domains", "tau2.domains." + domain): package(name)
    from tau2.environment.tool import as_tool
    from tau2.environment.toolkit import ToolKitBase
    try: module = importlib.import_module(f"tau2.domains.{domain}.tools")
    except Exception: continue
    for kind in vars(module).values():
        if not isinstance(kind, type) or not issubclass(kind, ToolKitBase) or kind is ToolKitBase: continue
        if kind.__module__ != module.__name__: continue
        kit = object.__new__(kind)
        tools = [as_tool(getattr(kit, name)).openai_schema for name in kit._func_tools]
        found[domain] = found.get(domain, []) + tools
json.dump(found, open(out, "w"))
"""


def talks(clones: Mapping[str, Clone]) -> Generator[tuple[str, bytes]]:
    """Yield the conversations, the raw answers, the tools and the system texts."""
    tools: dict[str, Any] = {}
    for repository in DECLARING:
        for world, declared in sorted(_declared(clones[repository]).items()):
            tools[f"{repository} {world}"] = declared
    found = _Found(tools)
    for line in FILES.read_text(encoding="utf-8").splitlines():
        repository, blob = line.split()
        for run in _runs(json.loads(clones[repository].blob(blob))):
            found.add(repository, blob, run)
    conversations = sorted(found.talks, key=lambda talk: talk["id"])
    answers = sorted(found.answers, key=lambda answer: answer["id"])
    used = sorted({row["tools"] for row in [*conversations, *answers]} - {None})
    systems = sorted({talk["system"] for talk in conversations} - {None})
    yield "talks/talks.jsonl.gz", _lines(conversations)
    yield "talks/answers.jsonl.gz", _lines(answers)
    yield "talks/tools.json.gz", _lines([{key: tools[key] for key in used}])
    yield "talks/systems.json.gz", _lines([{key: found.systems[key] for key in systems}])


class _Run(NamedTuple):
    """A run of an agent in a file of results."""

    world: str
    model: str | None
    policy: str | None
    record: dict[str, Any]


class _Found:
    """What was found so far. A conversation, or a raw answer, counts where it first stands."""

    def __init__(self, tools: dict[str, Any]) -> None:
        self.talks: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.systems: dict[str, str] = {}
        self._tools = tools
        self._seen: set[str] = set()
        self._answered = {OTHER_HALF}
        self._worlds: dict[str, str] = {}

    def add(self, repository: str, blob: str, found: _Run) -> None:
        """Add a run of an agent, if it is new and of our half."""
        world = found.world
        policy = found.policy
        run = found.record
        names = (f"{repository} {world}", f"{DECLARING[1]} {world}")
        key = next((name for name in names if name in self._tools), None)
        label = world or "?"
        if key is None and repository.startswith("oscaralvaro"):
            words = re.split(r"[_\W]+", (world or "").lower())
            people = [word for word in words if len(word) > 3 and word not in KINDS]
            if _names_one(people, run.get("messages")):
                return
            if _names_one(people, policy):
                policy = None
            label = self._worlds.setdefault(world, f"world {len(self._worlds) + 1}")
        system, messages, raw = _messages(run)
        mark = _digest(messages)
        if mark in self._seen or not any(message["role"] == "assistant" for message in messages):
            return
        self._seen.add(mark)
        is_ours = int(mark[:8], 16) % 2 == 0
        if policy:
            system = SYSTEM.format(INSTRUCTION, policy)
        if system:
            self.systems[_digest(system)[:12]] = system
        name = (found.model or "?").split(":sierra")[0]
        reward = run.get("reward", (run.get("reward_info") or {}).get("reward"))
        of_run = {"source": repository, "domain": label, "tools": key}
        if is_ours:
            talk = {
                "id": mark[:12],
                "blob": blob,
                "model": name,
                "system": _digest(system)[:12] if system else None,
                "messages": messages,
                "reward": reward,
                "passed": None if reward is None else reward >= 0.999,
            }
            self.talks.append({**of_run, **talk})
        for who, body, read in raw:
            digest = _digest(body)
            if digest[:12] in self._answered:
                continue
            self._answered.add(digest[:12])
            if is_ours:
                author = name if who == "assistant" else "user simulator"
                answer = {"id": digest[:12], "talk": mark[:12], "model": author, "who": who}
                self.answers.append({**of_run, **answer, "raw": body, "read": read})


def _names_one(people: list[str], value: Any) -> bool:
    text = json.dumps(value, ensure_ascii=False).lower()
    return any(name in text for name in people)


def _runs(results: Any) -> Generator[_Run]:
    """Yield each run in a file of results."""
    if isinstance(results, dict) and isinstance(results.get("simulations"), list):
        info = results.get("info") or {}
        environment = info.get("environment_info") or {}
        world = environment.get("domain_name") or results.get("domain")
        model = (info.get("agent_info") or {}).get("llm") or results.get("model")
        for run in results["simulations"]:
            if isinstance(run, dict):
                yield _Run(world, model, run.get("policy") or environment.get("policy"), run)
    elif isinstance(results, list) and results and "traj" in results[0]:
        is_airline = any("flight" in json.dumps(run["traj"][0]) for run in results[:3])
        for run in results:
            yield _Run("airline" if is_airline else "retail", "gpt-4o", None, run)


def _messages(run: dict[str, Any]) -> tuple[str | None, list[dict[str, Any]], list[tuple[str, Any, Any]]]:
    """Return the system text, the messages of the agent's side, and the raw answers with their reading."""
    messages: list[dict[str, Any]] = []
    raw: list[tuple[str, Any, Any]] = []
    if "traj" in run:
        messages += [
            {key: value for key, value in message.items() if value is not None or key == "content"}
            for message in run["traj"]
        ]
        has_system = bool(messages) and messages[0]["role"] == "system"
        return (messages.pop(0)["content"] if has_system else None), messages, raw
    for message in run.get("messages") or ():
        role = message.get("role")
        calls = message.get("tool_calls") or ()
        if message.get("raw_data"):
            read = [[call["name"], call["arguments"]] for call in calls]
            raw.append((role, message["raw_data"], {"content": message.get("content"), "calls": read}))
        if role == "user" and not calls:
            messages.append({"role": "user", "content": message["content"]})
        elif role == "assistant":
            said: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
            if calls:
                said["tool_calls"] = [_call(call) for call in calls]
            messages.append(said)
        elif role == "tool" and message.get("requestor") != "user":
            messages += [
                {"role": "tool", "content": result["content"], "tool_call_id": result["id"]}
                for result in message.get("tool_messages") or [message]
            ]
    return None, messages, raw


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}


def _declared(clone: Clone) -> dict[str, Any]:
    """Return the tools that a benchmark's own code declares, by world."""
    code = (".py", ".md", ".toml", ".json")
    folders = ("tau_bench/", "src/tau2/", "data/tau2/domains/")
    paths = [path for path in clone.paths() if path.endswith(code) and path.startswith(folders)]
    with tempfile.TemporaryDirectory() as folder:
        for path, content in clone.read_all([path for path in paths if "/results/" not in path]):
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        out = Path(folder, "tools.json")
        env = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # nothing is fetched
        subprocess.run([sys.executable, "-c", DECLARATIONS, folder, str(out)], env=env, check=True)
        return json.loads(out.read_text(encoding="utf-8"))


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode()
