"""Hard negatives: targets close in meaning to a source that do not translate it.

LaBSE, appendix B; Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence
Embeddings", section 3: a weaker dual encoder, a deep averaging network, finds them.
"""
