"""What the cluster's tests share with others."""

from tiny_cds import cds_config, cds_run, train_cds  # noqa: F401
