"""CTranslate2 as an engine in place of our own search or encoder: on a CPU several times as fast.

library.py             the folder of a converted model, opened with so many workers and threads
search_engine.py       what both kinds that search share, and what they cannot do as our own search does it
translation_engine.py  an encoder-decoder: ids of sources in, hypotheses out
generation_engine.py   a language model: ids of prompts in, hypotheses out, or tokens as they are written
encoding_engine.py     an encoder-only model: ids in, states out
"""
