"""Hard negatives: targets that are near to a source's meaning and yet do not translate it.

LaBSE, appendix B; Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence
Embeddings", section 3: a weaker dual encoder, over a deep averaging network, finds them.
"""
