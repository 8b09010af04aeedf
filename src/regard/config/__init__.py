"""A run's settings: frozen dataclasses (`tables.py`), read from TOML, written to it and changed by dots (`files.py`).

One class a table of the file, one source for each default. Nothing here is evaluated, and no key can name code.
"""

from regard.config.files import (
    as_table,
    build,
    changed,
    check_fields,
    check_range,
    default_config,
    from_tables,
    names_no_preset,
    override,
    read,
    refuse_unread,
    to_tables,
    to_toml,
)
from regard.config.tables import (
    AS_SAVED,
    REQUIRED,
    AugmentationConfig,
    CorruptionConfig,
    DataConfig,
    DecodingConfig,
    InspectionConfig,
    ModelTable,
    RunConfig,
    RuntimeConfig,
    TokenizerConfig,
    TrainingConfig,
    option,
)

__all__ = [
    "AS_SAVED",
    "REQUIRED",
    "AugmentationConfig",
    "CorruptionConfig",
    "DataConfig",
    "DecodingConfig",
    "InspectionConfig",
    "ModelTable",
    "RunConfig",
    "RuntimeConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "as_table",
    "build",
    "changed",
    "check_fields",
    "check_range",
    "default_config",
    "from_tables",
    "names_no_preset",
    "option",
    "override",
    "read",
    "refuse_unread",
    "to_tables",
    "to_toml",
]
