"""The Transformer on ordinary CPUs: translate, generate, classify, embed, train.

    import heed
    model = heed.load("models/en-de")
    print(model.translate("Good morning. How are you?", beam=4))

A function that takes a str also takes a list of them and then returns a list: inputs are batched, and a
result does not depend on the batch. A model may be used from several threads; the GIL is released while
Heed works, and Ctrl-C ends the wait. Defaults of options are those of the model's generation_config.json.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

__version__: str

class Error(RuntimeError):
    """An error of the library. A call with wrong arguments is a TypeError."""

    code: Literal["invalid_argument", "not_found", "corrupt_file", "unsupported", "out_of_memory", "cancelled", "internal"]
    hint: str  # how to resolve it, in one line; may be ""

class _LoadOptions(TypedDict, total=False):
    threads: int  # threads of each worker; 0 is an equal share of all CPUs
    workers: int  # batches that run at the same time, each on --threads threads
    kv_memory_bytes: int  # memory of the KV cache
    max_sequences: int  # sequences (beams counted) that decode at the same time
    batch_tokens: int  # token rows of one forward pass, at most
    scores: bool  # compute the scores of greedy and sampled answers

class _GenerateOptions(TypedDict, total=False):
    greedy: bool  # argmax at every step: neither a beam nor sampling
    beam: int  # beam size; 1 is greedy
    nbest: int  # answers to each input, best first; raises the beam size if that is not set
    length_penalty: float  # beam search: exponent of the length penalty; 0 is none, more favours long answers
    length_penalty_rule: Literal["power", "gnmt"]  # power: sum log p / length^P; gnmt: sum log p / ((5 + length) / 6)^P
    early_stopping: Literal["no", "yes", "never"] | bool  # end the beam search when as many hypotheses as beams are finished
    min_new_tokens: int  # minimum number of new tokens
    max_new_tokens: int  # maximum number of new tokens
    no_repeat_ngram: int  # no n-gram of this size occurs twice; 0 is off
    repetition_penalty: float  # above 1, tokens of the prompt and the answer become less probable
    presence_penalty: float  # is subtracted from the logits of tokens that were generated before
    frequency_penalty: float  # is subtracted from a token's logit for each time it was generated
    logit_bias: Mapping[int, float]  # is added to the logits of these token ids; -100 bans a token
    stop: str | Iterable[str]  # string that ends the answer, not part of it; repeatable
    banned: str | Iterable[str]  # text that must not occur; repeatable
    required: str | Iterable[str]  # text that must occur (needs a beam); repeatable
    sample: bool  # sample tokens; implied by temperature, top_k, top_p and min_p
    temperature: float  # sampling: divides the logits; 0 is argmax
    top_k: int  # sample from the k most probable tokens; 0 is all
    top_p: float  # nucleus sampling: from the most probable tokens with this total probability
    min_p: float  # sample no token less probable than this times the most probable one
    seed: int  # random seed of sampling
    prefix: str  # beginning of the answer
    source_language: str  # multilingual models: language of the source, fr or a token
    target_language: str  # multilingual models: language of the answer

class _TranslateOptions(_GenerateOptions, total=False):
    source_prefix: str  # text before every sentence: 'translate English to German: '
    split_sentences: bool  # translate sentence by sentence
    format: Literal["text", "html", "markdown"]  # what the text is written in: its markup stays

class _EmbedOptions(TypedDict, total=False):
    pooling: Literal["mean", "first", "last"]  # of the token vectors
    normalize: bool  # scale the vector to length 1
    long_text: Literal["truncate", "chunks"]  # beyond the context length: truncate or split
    max_tokens: int  # truncate to this length; 0: context length

class _ScoreOptions(TypedDict, total=False):
    window: int  # tokens of a window of a long text; 0: context length
    stride: int  # tokens between windows; 0: half a window
    begin: bool  # put the begin token (BOS) before the text
    end: bool  # score the end token (EOS) too

class Translation:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def alternatives(self) -> list[str]: ...  # the n best; the first is `text`
    @property
    def scores(self) -> list[float]: ...  # theirs
    @property
    def sentences(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Answer:
    @property
    def text(self) -> str: ...
    @property
    def ids(self) -> list[int]: ...  # with the prompt, or the decoder start token
    @property
    def new_tokens(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def finish(self) -> Literal["end", "stop", "length"]: ...

class Result:
    @property
    def text(self) -> str: ...  # of the best answer
    @property
    def answers(self) -> list[Answer]: ...  # best first
    @property
    def input_tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Stream(Iterator[str]):
    """The pieces of an answer while it is decoded. Destroying it cancels the generation."""

    def __iter__(self) -> Stream: ...
    def __next__(self) -> str: ...
    def result(self) -> Result: ...  # waits for the end

class Classified:
    @property
    def label(self) -> int: ...  # -1: regression, or the input has no token
    @property
    def name(self) -> str: ...
    @property
    def probabilities(self) -> list[float]: ...
    @property
    def logits(self) -> list[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Scored:
    @property
    def log_probability(self) -> float: ...
    @property
    def perplexity(self) -> float: ...
    @property
    def ids(self) -> list[int]: ...
    @property
    def token_scores(self) -> list[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Tokens:
    @property
    def ids(self) -> list[int]: ...
    @property
    def pieces(self) -> list[str]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...  # characters of the text, [begin, end)
    def __len__(self) -> int: ...

class Info:
    @property
    def model_type(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def weight_type(self) -> str: ...
    @property
    def flops_per_token(self) -> float: ...
    @property
    def settings(self) -> dict[str, Any]: ...

class Model:
    @property
    def folder(self) -> str: ...
    @property
    def family(self) -> Literal["encoder_decoder", "encoder_only", "decoder_only"]: ...
    @property
    def head(self) -> str: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def can_generate(self) -> bool: ...
    def info(self) -> Info: ...
    @overload
    def translate(self, texts: str, **options: Unpack[_TranslateOptions]) -> Translation: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Unpack[_TranslateOptions]) -> list[Translation]: ...
    @overload
    def generate(self, prompts: str, **options: Unpack[_GenerateOptions]) -> Result: ...
    @overload
    def generate(self, prompts: Iterable[str], **options: Unpack[_GenerateOptions]) -> list[Result]: ...
    def stream(self, prompt: str, **options: Unpack[_GenerateOptions]) -> Stream: ...
    @overload
    def classify(self, texts: str | tuple[str, str]) -> Classified: ...
    @overload
    def classify(self, texts: Iterable[str | tuple[str, str]]) -> list[Classified]: ...
    # A numpy.ndarray of float32, [width] or [texts, width]; without numpy, lists of float.
    def embed(self, texts: str | Iterable[str], **options: Unpack[_EmbedOptions]) -> Any: ...
    # Encoder-decoder models take pairs: the source, and the target that is scored.
    @overload
    def score(self, texts: str | tuple[str, str], **options: Unpack[_ScoreOptions]) -> Scored: ...
    @overload
    def score(self, texts: Iterable[str | tuple[str, str]], **options: Unpack[_ScoreOptions]) -> list[Scored]: ...
    def tokenize(self, text: str, *, special_tokens: bool = ...) -> Tokens: ...
    def detokenize(self, ids: Iterable[int], *, skip_special_tokens: bool = ...) -> str: ...

class TrainProgress:
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def tokens_per_second(self) -> float: ...
    @property
    def remaining_seconds(self) -> float: ...
    @property
    def epoch(self) -> int: ...

class TrainResult:
    @property
    def folder(self) -> str: ...  # to load()
    @property
    def steps(self) -> int: ...
    @property
    def finished(self) -> bool: ...  # False: stopped; the same call resumes
    @property
    def seconds(self) -> float: ...
    @property
    def tokens(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def validation(self) -> dict[str, float]: ...
    @property
    def best_metric(self) -> float | None: ...
    @property
    def best_step(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def planned_bytes(self) -> int: ...
    @property
    def peak_rss_bytes(self) -> int: ...

def load(folder: str | PathLike[str], **options: Unpack[_LoadOptions]) -> Model:
    """A model folder in Hugging Face's layout."""

def train(
    recipe: str | PathLike[str],
    *,
    set: Mapping[str, Any] = ...,  # {"train.steps": 9}, over the recipe
    out: str | PathLike[str] | None = ...,  # the folder to write; None: as the recipe says
    seed: int | None = ...,
    memory: int | str | None = ...,  # memory limit: bytes, or "4GB"
    threads: int = ...,
    progress: Callable[[TrainProgress], bool | None] | None = ...,  # after every step; False: save and return
    note: Callable[[str], None] | None = ...,  # called with each line of the log
) -> TrainResult:
    """Trains by a recipe. The same call resumes from the last checkpoint."""
