"""One engine under every run: a store, packs, keys, pools, a plan and a folder. It knows no audio, codec or metric."""

from earmark.runs.engine import Failure, Ledger
from earmark.runs.folder import read_clips, read_record
from earmark.runs.identity import Stage, fingerprint
from earmark.runs.packs import LostPacks, Packer, Records, read_records
from earmark.runs.plan import PlannedStep, plan_text
from earmark.runs.pool import Pool, ProcessPool
from earmark.runs.store import Cache, Entry, open_cache

__all__ = [
    "Cache",
    "Entry",
    "Failure",
    "Ledger",
    "LostPacks",
    "Packer",
    "PlannedStep",
    "Pool",
    "ProcessPool",
    "Records",
    "Stage",
    "fingerprint",
    "open_cache",
    "plan_text",
    "read_clips",
    "read_record",
    "read_records",
]
