"""Contrastive data selection: how much more a translator likes a pair once tuned on trusted ones.

Wang et al. 2018, "Denoising Neural Machine Translation Training with Trusted Data and Online Data
Selection", the filter that the LaBSE paper names (section 3.1).
"""
