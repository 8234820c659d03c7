"""Contrastive data selection: how much tuning a translator on trusted pairs raises a pair's score.

Wang et al. 2018, "Denoising Neural Machine Translation Training with Trusted Data and Online Data
Selection", the filter that the LaBSE paper names (section 3.1).
"""
