"""Search for output: greedy, sampling, beam. This room knows a protocol (`protocol.py`) and no model.

search.py           decode: the one entry, which picks a method by the config
request.py          what every method is asked for
greedy.py           the likeliest token, again and again
sampling.py         a token drawn at random, again and again
autoregressive.py   the loop of these two
beam.py             beam search, and the same search as a stream of the events in beam_events.py
top_k.py            its candidates, found quickly
penalties.py        how sums of log-probabilities of different lengths are compared
rules.py            what may not be written
ensemble.py         several models that decode as one
sliding_context.py  writing on past the longest context
batches.py          many inputs, sorted by length, given back in order
engine/             another engine, CTranslate2, in place of all of these
result.py           what all of them return: the hypotheses of a sentence, best first
"""
