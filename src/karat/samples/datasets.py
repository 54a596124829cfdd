"""Data sets of other tools: folders of BEIR, ids of ir_datasets, MTEB predictions, LlamaIndex's JSON, ranx objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from karat.errors import BadArgument, InputError, Unavailable, first_line, nearest, unknown
from karat.samples.dialects import long_column
from karat.samples.files import read_file
from karat.samples.json_rows import Rows

_IR_DATASETS = ("ir_datasets:", "irds:")
_QUERY_IDS = ("_id", "id", "query_id", "query-id")
_DEFAULT = "test"
_MTEB = "mteb_model_meta"
_LLAMAINDEX = frozenset(("queries", "corpus", "relevant_docs"))

Columns = dict[str, list[Any]]
"""Gold with one value per query: id, query and gold."""


def is_dataset(value: object) -> bool:
    """True for an id of ir_datasets, a folder of BEIR, and the qrels in such a folder."""
    if not isinstance(value, str | PathLike):
        return False
    name = str(value)
    return name.startswith(_IR_DATASETS) or _folder(Path(name)) is not None


def read_dataset(value: str | PathLike[str], split: str | None) -> tuple[Any, str]:
    """The gold of a data set, with the texts of its queries as far as it has them, and its name for messages."""
    name = str(value)
    prefix = next((prefix for prefix in _IR_DATASETS if name.startswith(prefix)), None)
    if prefix is not None:
        return _of_ir_datasets(name.removeprefix(prefix), split), name
    path = Path(name)
    folder = _folder(path)
    assert folder is not None
    qrels = path if path.is_file() else _qrels_of(folder, split)
    return _of_beir(folder, qrels), str(qrels)


def _folder(path: Path) -> Path | None:
    """The folder of a BEIR data set, by its path or by that of its qrels."""
    try:
        if path.is_dir():
            return path if (path / "qrels").is_dir() or (path / "corpus.jsonl").is_file() else None
        inside = path.parent.name == "qrels" and path.is_file() and (path.parent.parent / "queries.jsonl").is_file()
    except (OSError, ValueError):
        return None
    return path.parent.parent if inside else None


def corpus_of(path: Path) -> Path | None:
    """The documents of a BEIR folder; None for other folders and files."""
    corpus = path / "corpus.jsonl"
    return corpus if path.is_dir() and _folder(path) is not None and corpus.is_file() else None


def _qrels_of(folder: Path, split: str | None) -> Path:
    """The qrels of a split: the one that is asked for, else test, else the only one."""
    files = sorted((folder / "qrels").glob("*"))
    found = {path.name.partition(".")[0]: path for path in files if path.is_file()}
    split = None if split is None else split.rpartition("/")[2]  # "default/test" of MTEB
    if split is None and (_DEFAULT in found or len(found) == 1):
        return found.get(_DEFAULT) or next(iter(found.values()))
    if split in found:
        return found[str(split)]
    if not found:
        raise InputError(f"{folder}: a BEIR folder needs qrels", hint=f"{folder}/qrels/test.tsv")
    problem = f"{folder}: no split {split!r}" if split else f"{folder}: several splits, and none is {_DEFAULT}"
    raise InputError(problem, got=list(found), hint=f"--split {nearest(split or '', found) or next(iter(found))}")


def _of_beir(folder: Path, qrels: Path) -> Columns:
    """Grades by query, and the texts of the queries that have some."""
    frame: Any = read_file(qrels)
    names = [] if isinstance(frame, Rows) else list(getattr(frame, "columns", ()))
    query, item = long_column(names, "query"), long_column(names, "item")
    grade = long_column(names, "grade") or long_column(names, "score")
    if query is None or item is None or grade is None:
        raise InputError(f"{qrels}: expected the columns query-id, corpus-id and score", got=names)
    gold: dict[str, dict[str, float]] = {}
    for own, doc, value in frame.select(query, item, grade).iter_rows():
        gold.setdefault(str(own), {})[str(doc)] = _number(value, qrels)
    path = folder / "queries.jsonl"
    texts = _texts(path) if path.is_file() else {}
    return _columns(gold, texts)


def _number(value: Any, place: object) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place}: a grade is not a number", got=value) from error


def _texts(path: Path) -> dict[str, str]:
    """The texts of queries by their ids."""
    rows: Any = read_file(path)
    given = [(next((row[name] for name in _QUERY_IDS if name in row), None), row.get("text")) for row in rows.rows]
    return {str(name): text for name, text in given if isinstance(text, str)}


def _columns(gold: Mapping[str, Any], texts: Mapping[str, str]) -> Columns:
    ids = list(gold)
    found: Columns = {"id": ids, "gold": [gold[name] for name in ids]}
    return found | {"query": [texts.get(name) for name in ids]} if texts else found


def _of_ir_datasets(name: str, split: str | None) -> Any:
    """The gold of a data set of the package ir_datasets; with subtopics as a long table."""
    try:
        ir_datasets: Any = import_module("ir_datasets")
    except ImportError as error:
        raise Unavailable("the package ir_datasets is not installed", hint="pip install ir_datasets") from error
    name = f"{name}/{split}" if split and not name.endswith(f"/{split}") else name
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise unknown("data set", name, list(ir_datasets.registry), "irds:beir/scifact/test") from error
    if not dataset.has_qrels():
        splits = [one for one in ir_datasets.registry if str(one).startswith(f"{name}/")]
        raise InputError(f"irds:{name} has no qrels", got=splits or name, hint=f"irds:{splits[0]}" if splits else None)
    try:
        rows = list(dataset.qrels_iter())
        texts = {q.query_id: q.default_text() for q in dataset.queries_iter()} if dataset.has_queries() else {}
    except Exception as error:  # a download that fails, or the package's own errors
        raise Unavailable(
            f"irds:{name} cannot be read: {first_line(error)}", hint=f"ir_datasets export {name} qrels"
        ) from error
    if rows and hasattr(rows[0], "subtopic_id"):
        return _long([(row.query_id, row.doc_id, row.relevance, row.subtopic_id) for row in rows])
    gold: dict[str, dict[str, float]] = {}
    for row in rows:
        gold.setdefault(row.query_id, {})[row.doc_id] = row.relevance
    return _columns(gold, texts)


def _long(rows: Sequence[tuple[Any, ...]]) -> Any:
    import polars as pl

    return pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "subtopic_id"], orient="row")


def converted(value: Any, side: str, split: str | None) -> tuple[Any, bool]:
    """The data in karat's form, if another tool's object or JSON document is recognised; and whether it has splits."""
    if isinstance(value, Mapping):
        if _MTEB in value:
            return _of_mteb(value, split), True
        if value.keys() >= _LLAMAINDEX and side != "retrieved":
            return _of_llamaindex(value), False
        return value, False
    if hasattr(value, "to_dict") and type(value).__module__.partition(".")[0] == "ranx":
        return value.to_dict(), False
    return value, False


def _of_mteb(value: Mapping[str, Any], split: str | None) -> Mapping[str, Any]:
    """The scores by query of one subset and split of a prediction file of MTEB."""
    found = {
        (subset, own): scores
        for subset, splits in value.items()
        if subset != _MTEB and isinstance(splits, Mapping)
        for own, scores in splits.items()
        if isinstance(scores, Mapping)
    }
    fit = [pair for pair in found if split is None or split in (pair[0], pair[1], "/".join(pair))]
    if len(fit) == 1:
        return found[fit[0]]
    names = ["/".join(pair) for pair in found]
    if not names:
        raise InputError("the prediction file of MTEB has no scores", got=list(value))
    problem = f"MTEB predictions: no split {split!r}" if not fit else "MTEB predictions of several subsets or splits"
    raise InputError(problem, got=names, hint=f"--split {'/'.join((fit or list(found))[0])}")


def _of_llamaindex(value: Mapping[str, Any]) -> Columns:
    """Gold of LlamaIndex's EmbeddingQAFinetuneDataset, which sentence-transformers uses, too: ids with their texts."""
    queries, corpus, relevant = (value[name] for name in ("queries", "corpus", "relevant_docs"))
    if not all(isinstance(one, Mapping) for one in (queries, corpus, relevant)):
        raise BadArgument("queries, corpus and relevant_docs are dicts by id", got=list(value))
    texts = {name: text for name, text in queries.items() if isinstance(text, str)}
    return _columns({name: _items(own, corpus) for name, own in relevant.items()}, texts)


def _items(ids: Any, corpus: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Gold records of one query."""
    grades = ids if isinstance(ids, Mapping) else None
    names: Iterable[Any] = sorted(ids, key=str) if isinstance(ids, set | frozenset) else ids
    items = []
    for name in names:
        text = corpus.get(name)
        text = text.get("text") if isinstance(text, Mapping) else text
        more = {"text": text} if isinstance(text, str) else {}
        items.append({"id": name, **more, **({} if grades is None else {"grade": grades[name]})})
    return items
