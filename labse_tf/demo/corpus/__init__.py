"""The demo corpus: openly licensed translations that ship with installed Python packages.

`sources` reads raw pairs, `cleaning` makes two clean sentences of a raw pair or drops it, and
`write` divides the clean pairs and writes them to a folder.

There are two kinds of pairs: messages (shown by a program to its users, about half of them
sentences) and names (of languages, countries, currencies, ...). Names are many and short, and cover
languages that none of the programs is translated into; they are used for training only. All
held-out pairs are messages.
"""
