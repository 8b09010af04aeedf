"""`regard import`: other people's weights as a run."""

from typing import Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag
from regard.cli.terminal import busy, print_facts, print_json, results, shell_word, tell
from regard.errors import UsageError


def import_model(
    path: Annotated[
        str,
        Parameter(help="a folder with config.json, model.safetensors and the tokenizer's files, or a GGUF file"),
    ],
    /,
    *,
    run: Annotated[str, Parameter(metavar="RUN", help="the folder of the new run")] = "",
    source_language: Annotated[
        str, Parameter(metavar="CODE", help="of a translator between many languages, such as eng_Latn or en")
    ] = "",
    target_language: Annotated[str, Parameter(metavar="CODE", help="the same for what it writes")] = "",
    allow_pickle: Annotated[
        bool, Parameter(help="also read pickled weights (.bin, .pt), by torch's reader that runs no code")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Import a model of Hugging Face's transformers, or a GGUF file, as a run: used, scored, fine-tuned as any other.

    Known are BERT (also of sentence-transformers), GPT-2, Llama, Mistral, Qwen2, T5, Marian, M2M100, Pegasus, ViT and
    ResNet; of GGUF files Llama, Mistral and Qwen2, whose weights are dequantised, with the tokenizer inside. Nothing is
    downloaded, and no code of the folder is run.
    """
    if not run:
        raise UsageError("An imported model needs a folder of its own.", "Name it with --run RUN.")
    with busy("importing"):
        from regard import api

        loaded = api.import_model(
            path,
            run=run,
            source_language=source_language,
            target_language=target_language,
            allow_pickle=allow_pickle,
        )
    spec = loaded.spec
    if json:
        facts = {"run": run, "task": spec.name, "parameters": loaded.n_parameters, "notes": list(loaded.notes)}
        print_json(facts)
        return
    for note in loaded.notes:
        tell(f"note: {note}")
    shown = [("run", run), ("task", spec.name), ("parameters", f"{loaded.n_parameters:,}")]
    print_facts(shown, results())
    tell(f"Use it: regard {spec.verb} {shell_word(run)} {spec.example}")
    tell(f"Fine-tune it: regard train {spec.name} --init {shell_word(run)} --train FILE…")
