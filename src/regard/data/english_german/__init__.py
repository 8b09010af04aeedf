"""The synchronous grammar behind `regard.data.grammar`: words, their forms, clauses, sentence patterns."""
