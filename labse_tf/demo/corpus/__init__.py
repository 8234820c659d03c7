"""The demo corpus: openly licensed translations that ship with installed Python packages.

`sources` reads raw pairs, `cleaning` makes two clean sentences of a raw pair or drops it, and
`write` divides the clean pairs and writes them to a folder.

There are two kinds of pairs: messages of programs, about half of them sentences, and names (of
languages, countries, ...). Names cover more languages, and are used for training only.
"""
