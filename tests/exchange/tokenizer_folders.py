"""Small tokenizers of every family, saved as transformers saves them, of text that is made here."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from regard.data.text.imported_check import QWEN2, SPLITS

SAID = [
    "The dog runs through the park and the cat sleeps.",
    "A man is playing the guitar on a stage, isn't he?",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "Η γρήγορη αλεπού πηδάει πάνω από το σκυλί.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।",
    "敏捷的棕色狐狸跳过了懒狗。今天天气很好！",
    "素早い茶色の狐がのろまな犬を飛び越える。",
    'In 1984 there were 1,234,567 dogs (and 42 cats) — "really"?',
]
# Scripts that no vocabulary here has learned: byte by byte, unknown, or cut as their own letters and marks are.
UNSEEN = [
    "הכלב רץ בפארק והחתול ישן על הכיסא.",
    "สุนัขวิ่งในสวน และแมวนอนหลับบนเก้าอี้",
    "개가 공원을 달리고 고양이는 의자에서 잠을 잔다.",
]
ODD = [
    "👩‍👩‍👧‍👦 family 👍🏽 ok 🇩🇪",
    "cafe\u0301 nai\u0308ve Å",
    "tab\there  two   spaces ",
    "  in front",
    "\x01control\x7f \x00 zero",
    "line\nbreak\r\nand\n\nmore",
    "ﬁne ½ ① Ⅷ",
    "▁under▁score ▁▁ ##ing @@ </w> Ġ",
    "<0x0A> <0xE2>",
    "zero\u200bwidth \u200djoiner \ufeffmark",
    "DON'T don't I'LL we've",
    " ",
    "\n",
    "",
]
NAMES = "<s> </s> <pad> <unk> [CLS] [SEP] [MASK] [UNK] <mask> <|endoftext|> <extra_id_0> eng_Latn __en__ >>fra<<"


def lines(n: int = 200) -> list[str]:
    """Text of several scripts: sentences, odd ones, and characters of all of them at random."""
    draw = random.Random(1)
    letters = "".join((*SAID, *ODD[:3])) + "   abc"
    mixed = ["".join(draw.choices(letters, k=draw.randint(1, 40))) for _ in range(n)]
    joined = [" ".join(draw.sample(" ".join(SAID).split(), 8)) for _ in range(n)]
    return [*SAID, *UNSEEN, *ODD, *mixed, *joined]


def corpus() -> list[str]:
    return [one for one in [*SAID, *ODD] * 4 if one.strip()]


def save(folder: Path, library: tokenizers.Tokenizer, config: dict[str, Any] | None = None, **names: Any) -> None:
    """Save as transformers does."""
    PreTrainedTokenizerFast(tokenizer_object=library, **names).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config or {}))


def around(library: tokenizers.Tokenizer, template: str) -> None:
    """Put special tokens around each text, as "[CLS] $A [SEP]"."""
    names = [one for one in template.split() if one != "$A"]
    ids = [(name, library.token_to_id(name)) for name in names]
    library.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)


def bert(folder: Path) -> None:
    library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=list(names.values()), show_progress=False)
    library.train_from_iterator(corpus(), trainer)
    around(library, "[CLS] $A [SEP]")
    library.enable_truncation(8)
    save(folder, library, {"model_type": "bert"}, **{f"{key}_token": name for key, name in names.items()})


def byte_level(specials: list[str], *, pattern: str = "", size: int = 500) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)
    if pattern:
        parts = [pre_tokenizers.Split(Regex(pattern), "isolated"), library.pre_tokenizer]
        library.pre_tokenizer = pre_tokenizers.Sequence(parts)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(corpus(), trainer)
    library.add_special_tokens(specials)
    return library


def gpt2(folder: Path) -> None:
    library = byte_level(["<|endoftext|>"])
    library.post_processor = processors.ByteLevel(trim_offsets=False)
    names = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    save(folder, library, {"model_type": "gpt2"}, **names)


def llama3(folder: Path) -> None:
    pattern = next(one for one in SPLITS if one.startswith("(?i:'s") and r"\p{N}{1,3}" in one and r"\s+\z" not in one)
    library = byte_level(["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_0|>"], pattern=pattern)
    around(library, "<|begin_of_text|> $A")
    save(folder, library, {"model_type": "llama"}, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>")


def qwen2(folder: Path) -> None:
    library = byte_level(["<|endoftext|>", "<|im_start|>"], pattern=QWEN2)
    library.normalizer = normalizers.NFC()
    library.add_tokens(["<tool_call>"])
    config = {"model_type": "qwen2", "vocab_size": 640}
    save(folder, library, config, eos_token="<|endoftext|>", pad_token="<|endoftext|>", add_bos_token=False)


def pieces(texts: Sequence[str] = (), **settings: Any) -> bytes:
    """A SentencePiece model."""
    written = io.BytesIO()
    settings = {"vocab_size": 400, "model_type": "unigram", "hard_vocab_limit": False, "minloglevel": 2, **settings}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts or corpus()), model_writer=written, **settings
    )
    return written.getvalue()


def llama2_model() -> bytes:
    return pieces(
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.98,
    )


def write_files(folder: Path, **files: Any) -> None:
    """Write files by their names, with a dot for the last underscore: bytes, text, or a table as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / ".".join(name.rsplit("_", 1))
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def llama2(folder: Path) -> None:
    settings = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>"}
    settings["unk_token"] = "<unk>"
    config = {"model_type": "llama", "vocab_size": 704}
    write_files(folder, tokenizer_model=llama2_model(), tokenizer_config_json=settings, config_json=config)


def t5(folder: Path) -> None:
    model = pieces(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98)
    config = {"model_type": "t5", "is_encoder_decoder": True, "decoder_start_token_id": 0, "vocab_size": 1024}
    settings = {"tokenizer_class": "T5Tokenizer", "extra_ids": 100, "eos_token": "</s>", "pad_token": "<pad>"}
    settings["unk_token"] = "<unk>"
    write_files(folder, spiece_model=model, config_json=config, tokenizer_config_json=settings)


def marian_files(*, languages: bool = False, missing: int = 7) -> dict[str, Any]:
    """Two models and one vocabulary, in which some pieces of each are missing."""
    models = [pieces(texts, character_coverage=0.98) for texts in (SAID[:6] * 5, SAID[2:] * 5)]
    names: dict[str, None] = {"</s>": None, "<unk>": None}
    for model in models:
        found = sentencepiece.SentencePieceProcessor(model_proto=model)
        all_names = [found.id_to_piece(id) for id in range(3, found.get_piece_size())]
        names |= dict.fromkeys(all_names[:-missing:2] + all_names[1:-missing:2])
    names |= dict.fromkeys([">>fra<<", ">>ita<<"] if languages else [])
    vocabulary = {name: id for id, name in enumerate([*names, "<pad>"])}
    config = {"model_type": "marian", "is_encoder_decoder": True, "vocab_size": len(vocabulary)}
    config["decoder_start_token_id"] = vocabulary["<pad>"]
    settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    return {
        "source_spm": models[0],
        "target_spm": models[1],
        "vocab_json": vocabulary,
        "config_json": config,
        "tokenizer_config_json": settings,
    }


def marian(folder: Path, **settings: Any) -> None:
    write_files(folder, **marian_files(**settings))


def m2m100(folder: Path) -> None:
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    model = pieces(model_type="bpe", vocab_size=500, character_coverage=0.98)
    found = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = ["<s>", "<pad>", "</s>", "<unk>", *(found.id_to_piece(id) for id in range(3, found.get_piece_size() - 5))]
    vocabulary = {name: id for id, name in enumerate(names)}
    languages = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    config = {"model_type": "m2m_100", "is_encoder_decoder": True, "decoder_start_token_id": 2}
    config["vocab_size"] = len(names) + len(languages) + 8
    settings = {"tokenizer_class": "M2M100Tokenizer", "src_lang": "en", "tgt_lang": "de", "eos_token": "</s>"}
    settings |= {"additional_special_tokens": languages, "bos_token": "<s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    files = {"vocab_json": vocabulary, "config_json": config, "tokenizer_config_json": settings}
    write_files(folder, **files)
    (folder / "sentencepiece.bpe.model").write_bytes(model)


def xlm_roberta(folder: Path) -> None:
    settings = {"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>"}
    settings |= {"sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    write_files(folder, tokenizer_config_json=settings, config_json={"model_type": "xlm-roberta"})
    (folder / "sentencepiece.bpe.model").write_bytes(pieces(character_coverage=0.98))


def nllb(folder: Path) -> None:
    from transformers import NllbTokenizer

    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False)
    library = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.train_from_iterator(corpus(), trainer)
    model = json.loads(library.to_str())["model"]
    codes = ["deu_Latn", "eng_Latn", "zho_Hans"]
    made = NllbTokenizer(
        vocab=model["vocab"],
        merges=[tuple(pair) for pair in model["merges"]],
        src_lang="eng_Latn",
        tgt_lang="deu_Latn",
        extra_special_tokens=codes,
    )
    made.save_pretrained(folder)
    config = {"model_type": "m2m_100", "is_encoder_decoder": True, "decoder_start_token_id": 2, "vocab_size": 512}
    write_files(folder, config_json=config)


def gpt2_files(folder: Path) -> None:
    file = json.loads(byte_level(["<|endoftext|>"]).to_str())
    vocabulary = {**file["model"]["vocab"], "<|endoftext|>": len(file["model"]["vocab"])}
    merges = "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in file["model"]["merges"]) + "\n"
    settings = {"tokenizer_class": "GPT2Tokenizer"}
    write_files(folder, vocab_json=vocabulary, config_json={"model_type": "gpt2"}, tokenizer_config_json=settings)
    (folder / "merges.txt").write_text(merges)


def bert_files(folder: Path) -> None:
    bert(folder)
    file = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").unlink()
    names = sorted(file["model"]["vocab"], key=file["model"]["vocab"].get)
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")
    write_files(folder, tokenizer_config_json={"tokenizer_class": "BertTokenizer", "do_lower_case": False})
