"""Denoising: masked language modelling (BERT) and span corruption (T5)."""
