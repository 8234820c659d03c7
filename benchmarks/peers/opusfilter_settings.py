"""OpusFilter's counterparts of our filters; imported in its environment and in ours."""


def settings(language, script, lid_model):
    """Returns (our name, OpusFilter's class, its parameters) for pairs of English and a language.

    Limits are close to ours; `lid_model` is the path of the same fastText model.
    """
    return [
        ("length", "LengthFilter", {"min_length": 2, "max_length": 5000, "unit": "char"}),
        ("length ratio", "LengthRatioFilter", {"threshold": 9, "unit": "char"}),
        (
            "script",
            "CharacterScoreFilter",
            {"scripts": ["Latin", script], "thresholds": [0.3, 0.3]},
        ),
        ("mark-up", "HtmlTagFilter", {}),
        ("numbers", "NonZeroNumeralsFilter", {"threshold": 0.3}),
        ("similar sides", "SimilarityFilter", {"threshold": 0.6, "lowercase": True}),
        (
            "language",
            "FastTextFilter",
            {"languages": ["en", language], "thresholds": [0.3, 0.3], "model_path": lid_model},
        ),
    ]
