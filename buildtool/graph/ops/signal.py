"""The operators of TensorFlow Lite Micro's signal library, which compute features of sound.

They are custom operators in a file. Those with state keep it themselves: no tensor of the file holds it.
In a graph, the state is the last operand, and its new value the last output.
"""

from buildtool.graph.ops.types import NO_UINT8, CallForm, OpDef, Spelling
from buildtool.graph.types import OpKind

# The names of the custom operators.
CUSTOM = {
    OpKind.SIGNAL_WINDOW: "SignalWindow",
    OpKind.SIGNAL_FFT_AUTO_SCALE: "SignalFftAutoScale",
    OpKind.SIGNAL_RFFT: "SignalRfft",
    OpKind.SIGNAL_IRFFT: "SignalIrfft",
    OpKind.SIGNAL_ENERGY: "SignalEnergy",
    OpKind.SIGNAL_FILTER_BANK: "SignalFilterBank",
    OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT: "SignalFilterBankSquareRoot",
    OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: "SignalFilterBankSpectralSubtraction",
    OpKind.SIGNAL_PCAN: "SignalPCAN",
    OpKind.SIGNAL_FILTER_BANK_LOG: "SignalFilterBankLog",
    OpKind.SIGNAL_FRAMER: "SignalFramer",
    OpKind.SIGNAL_OVERLAP_ADD: "SignalOverlapAdd",
    OpKind.SIGNAL_STACKER: "SignalStacker",
    OpKind.SIGNAL_DELAY: "SignalDelay",
}


def _define(kind: OpKind, rule: str, operands: int = 1, results: int = 1, *, floats: bool = False) -> OpDef:
    """Returns the definition of an operator without state.

    `rule`: its function in `graph.reference`. `operands`, `results`: how many it has. `floats`: whether it
    also computes in float32.
    """
    return _definition(kind, rule, operands, results, {}, floats)


def _keep(kind: OpKind, rule: str, results: int = 1, *, floats: bool = False) -> OpDef:
    """Returns the definition of an operator of one operand that has a state.

    `rule`: its function in `graph.reference`. `results`: how many outputs it has besides the new state.
    `floats`: whether it also computes in float32.
    """
    return _definition(kind, rule, 2, results + 1, {1: results}, floats)


def _definition(
    kind: OpKind, rule: str, operands: int, results: int, state: dict[int, int], floats: bool
) -> OpDef:
    return OpDef(
        kind,
        None,
        rule,
        also=(Spelling(CUSTOM[kind], "signal:decode"),),
        written="signal:write",
        floats=rule if floats else "",
        whole="signal:check",
        no_uint8=NO_UINT8,
        call=CallForm.SIGNAL,
        case="signal",
        operands=operands,
        results=results,
        state=state,
    )


DEFS = (
    _define(OpKind.SIGNAL_WINDOW, "signal:window", operands=2),
    _define(OpKind.SIGNAL_FFT_AUTO_SCALE, "signal:auto_scale", results=2),
    _define(OpKind.SIGNAL_RFFT, "fourier:transform", floats=True),
    _define(OpKind.SIGNAL_IRFFT, "fourier:invert", floats=True),
    _define(OpKind.SIGNAL_ENERGY, "signal:energy"),
    _define(OpKind.SIGNAL_FILTER_BANK, "signal:filter_bank", operands=6),
    _define(OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT, "signal:square_root", operands=2),
    _keep(OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION, "signal:spectral_subtraction", results=2),
    _define(OpKind.SIGNAL_PCAN, "signal:pcan", operands=3),
    _define(OpKind.SIGNAL_FILTER_BANK_LOG, "signal:log"),
    _keep(OpKind.SIGNAL_FRAMER, "signalstate:frame", results=2),
    _keep(OpKind.SIGNAL_OVERLAP_ADD, "signalstate:overlap_add", floats=True),
    _keep(OpKind.SIGNAL_STACKER, "signalstate:stack", results=2),
    _keep(OpKind.SIGNAL_DELAY, "signalstate:delay"),
)
# Operators that own their state.
OWNERS = frozenset(one.kind for one in DEFS if one.state)
