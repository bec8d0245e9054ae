"""Write the page of the text formats from their table: what each looks like, and who writes it.

`tests/text/` checks that each example is read. `python3 tasks.py site` builds the page with the site.
"""  # noqa: INP001  (a script)

from collections.abc import Iterator

from sigadapt.text.contract import TextFormat
from sigadapt.text.formats import FORMATS

HEAD = """# Text formats

The forms in which models write calls as text, all of which are read. *Written* means that sigadapt can also
ask for calls in the form. The models and servers are those that their sources name; none was run.

| format | servers | models | written |
|---|---|---|---|
"""

# By format: which servers have a parser for it, or show it where they have none on; and which models write it
SERVERS_AND_MODELS: dict[str, tuple[str, str]] = {
    "hermes": (
        "vLLM `hermes`, `granite4`, `ernie45`, `qwen3_json`; Ollama; llama.cpp; mlx-lm",
        "Qwen2.5, Qwen3, QwQ, Nous Hermes, SmolLM3, MiMo-VL, Reka, Granite 4, Ernie 4.5",
    ),
    "llama3-json": (
        "vLLM `llama3_json`, `llama4_json`; Ollama; llama.cpp; LM Studio",
        "Llama 3.1, 3.2, 3.3, Llama 4",
    ),
    "mistral-json": (
        "vLLM `mistral`; llama.cpp; Ollama; mlx-lm",
        "Mistral 7B v0.3, Nemo, Mixtral, Large 2407",
    ),
    "dots": ("vLLM `dots`", "dots.llm1"),
    "longcat": ("vLLM `longcat`; mlx-lm", "LongCat"),
    "granite": ("vLLM `granite`; llama.cpp", "Granite 3"),
    "granite-20b-fc": ("vLLM `granite-20b-fc`", "Granite 20B Function Calling"),
    "phi4-mini": ("vLLM `phi4_mini_json`; llama.cpp", "Phi-4-mini, Firefunction v2"),
    "tool-calls-list": (
        "vLLM `jamba`, `hunyuan_a13b`; llama.cpp",
        "Jamba 1.5, Hunyuan A13B, Apriel, MiniMax M1",
    ),
    "internlm2": ("vLLM `internlm`", "InternLM 2, 2.5"),
    "nemotron-v2": ("llama.cpp; vLLM by a plug-in", "Nemotron Nano v2"),
    "pangu": ("none that is known", "openPangu"),
    "nemotron-mini": ("none that is known", "Nemotron Mini"),
    "cohere-actions": ("vLLM `cohere_command3`, `cohere_command4`; llama.cpp", "Command R7B, Command A"),
    "command-r-plus": ("llama.cpp; any server without a parser", "Command R, Command R+"),
    "inkling": ("vLLM `inkling`", "Inkling"),
    "apertus": ("vLLM `apertus`; llama.cpp", "Apertus"),
    "gigachat3": ("vLLM `gigachat3`; llama.cpp", "GigaChat 3, 3.1"),
    "lmstudio": ("LM Studio", "any model without its own form"),
    "lfm2-json": ("LocalAI; llama.cpp", "LFM2 where it writes JSON"),
    "qwen3-coder-xml": (
        "vLLM `qwen3_coder`, `qwen3_xml`, `mimo`, `step3p5`, `seed_oss`; Ollama; llama.cpp; mlx-lm; SGLang",
        (
            "Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5, MiMo V2, Granite 4.2, Seed-OSS; Llama 3.1 and "
            "Functionary 3.1 with JSON inside"
        ),
    ),
    "invoke": (
        "vLLM `minimax_m2`, `deepseek_v32`, `deepseek_v4`, `step3`; llama.cpp; mlx-lm",
        "MiniMax M2; Claude's form behind gateways; DeepSeek V3.2 and V4 (DSML); Step 3; Muse",
    ),
    "minicpm5-xml": ("vLLM `minicpm5_xml`; llama.cpp; mlx-lm", "MiniCPM5"),
    "kimi-k3": ("vLLM `kimi_k3`; llama.cpp; mlx-lm", "Kimi K3"),
    "solar-open2": ("none that is known", "Solar Open 2"),
    "glm-4.5": (
        "vLLM `glm45`, `glm47`, `ling3`, `poolside_v1`, `hy_v3`; Ollama; llama.cpp; mlx-lm; SGLang",
        "GLM 4.5, 4.6, 4.7, 5; Ling 3; Laguna; Spark 2.5; Hunyuan V3",
    ),
    "hunyuan-suffix": ("none that is known", "Hunyuan"),
    "iquest": ("none that is known", "IQuest"),
    "iquest-coder": ("none that is known", "IQuest Coder"),
    "k2-horizon": ("none that is known", "K2 Horizon"),
    "longcat-pairs": ("vLLM `longcat`; mlx-lm", "LongCat"),
    "minimax-m3": ("vLLM `minimax_m3`; llama.cpp", "MiniMax M3"),
    "gemma4": ("vLLM `gemma4`; Ollama; llama.cpp; mlx-lm", "Gemma 4"),
    "functiongemma": ("vLLM `functiongemma`; Ollama; llama.cpp; mlx-lm", "FunctionGemma"),
    "mistral-args": (
        "vLLM `mistral`; llama.cpp; Ollama; mlx-lm",
        "Mistral Small 3, Devstral, Magistral, Ministral 3, Large 3",
    ),
    "mistral-bare": (
        "any server that skips special tokens",
        "Mistral, DeepSeek and Functionary where the server drops their markers, or the prompt holds them",
    ),
    "deepseek-v3": ("vLLM `deepseek_v3`; llama.cpp; Ollama", "DeepSeek V3, R1 and its distillations, Cogito"),
    "deepseek-v3.1": ("vLLM `deepseek_v31`; llama.cpp; Ollama", "DeepSeek V3.1"),
    "kimi-k2": ("vLLM `kimi_k2`; llama.cpp; mlx-lm", "Kimi K2, K2 Thinking, K2.5"),
    "functionary-v3.2": ("llama.cpp", "Functionary 3.2"),
    "plamo3": ("vLLM `plamo3`", "PLaMo 3"),
    "bracket-calling": ("any server whose parser is off", "models that imitate a transcript of an agent"),
    "pythonic": (
        "vLLM `pythonic`, `llama4_pythonic`; any server whose parser is off",
        "Llama 3.2 1B and 3B, Llama 4, ToolACE, LFM2 without its tokens",
    ),
    "llama4-pythonic": ("vLLM `llama4_pythonic`; llama.cpp", "Llama 4, Llama 3.1's built-in tools"),
    "lfm2-pythonic": ("vLLM `lfm2`; Ollama; llama.cpp; mlx-lm; LocalAI", "LFM2, LFM2.5"),
    "olmo3-pythonic": ("vLLM `olmo3`; Ollama", "Olmo 3"),
    "gemma3-tool-code": ("any server without a parser", "Gemma 3, prompted"),
    "plain-json": (
        "vLLM `llama3_json`, `xlam`; Ollama; LM Studio; any server whose parser is off",
        "Llama 3, Qwen2.5-Coder, xLAM, Mistral without its marker, small models",
    ),
    "fenced-json": ("any server whose parser is off", "Qwen2.5-Coder, small models"),
    "harmony": ("vLLM `openai`; Ollama; llama.cpp; LM Studio", "gpt-oss, Beam, Muse"),
}


def page() -> str:
    """Write the page."""
    return HEAD + "".join(map(row, FORMATS)) + "\n" + "\n".join(section(each) for each in FORMATS)


def row(each: TextFormat) -> str:
    """Write a format as a row of the overview."""
    is_written = "yes" if each.write else ""
    servers, models = SERVERS_AND_MODELS[each.name]
    return f"| [{each.name}](#{anchor(each.name)}) | {servers} | {models} | {is_written} |\n"


def anchor(name: str) -> str:
    """Return the anchor that Markdown gives a heading."""
    return name.replace(".", "")


def section(each: TextFormat) -> str:
    """Write a format with its example."""
    return "\n".join(lines(each))


def lines(each: TextFormat) -> Iterator[str]:
    """Yield the lines of a format's section."""
    yield f"## {each.name}\n"
    fence = "````" if "```" in each.example else "```"
    yield f"{fence}text\n{each.example}\n{fence}\n"
    yield f"{each.reads}\n"


def main() -> None:
    """Print the page, which the site has."""
    print(page())  # noqa: T201


if __name__ == "__main__":
    main()
