"""A speaker model in the layout of pyannote's speaker-diarization-community-1, small and with random weights, and
what pyannote.audio 4.0.7 makes of it: networks, PLDA, VBx and whole pipeline.

usage: make_community.py, in an environment with pyannote.audio==4.0.7, safetensors and soundfile. Nothing is
downloaded. Writes beside itself: model/ (checkpoints as pyannote saves them, PLDA), audio.flac, golden.safetensors,
turns.json.
"""
import json, math, os, sys, types, warnings
os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import numpy as np, soundfile, torch
torch.set_num_threads(1)
torch.version.cuda = None  # torchaudio compares CUDA's versions when it is imported
class Anything(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None
sys.modules["pyannote.audio.telemetry"] = Anything("pyannote.audio.telemetry")
from safetensors.torch import save_file
import torchaudio.compliance.kaldi as kaldi
from scipy.cluster.hierarchy import fcluster, linkage
from pyannote.audio.core.plda import PLDA
from pyannote.audio.core.task import Problem, Resolution, Specifications
from pyannote.audio.models.embedding.wespeaker import WeSpeakerResNet34
from pyannote.audio.models.embedding.wespeaker.resnet import BasicBlock, ResNet
from pyannote.audio.models.segmentation.PyanNet import PyanNet
from pyannote.audio.pipelines.speaker_diarization import SpeakerDiarization
from pyannote.audio.utils.vbx import cluster_vbx

here = os.path.dirname(os.path.abspath(__file__))
model = os.path.join(here, "model")
for part in ("segmentation", "embedding", "plda"):
    os.makedirs(os.path.join(model, part), exist_ok=True)
torch.manual_seed(11)
golden = {}

# Segmentation.
net = PyanNet(sincnet={"stride": 10}, lstm={"hidden_size": 24, "num_layers": 2, "bidirectional": True, "monolithic": True,
              "dropout": 0.5}, linear={"hidden_size": 16, "num_layers": 2})
net.specifications = Specifications(problem=Problem.MONO_LABEL_CLASSIFICATION, resolution=Resolution.FRAME, duration=10.0,
    min_duration=None, warm_up=(0.0, 0.0), classes=["speaker#1", "speaker#2", "speaker#3"], powerset_max_classes=2,
    permutation_invariant=True)
net.build(); net.eval()
with torch.no_grad():
    for name, p in net.named_parameters():
        if "filterbank" in name:
            p += 20 * torch.randn_like(p)
        elif "norm" in name:
            p += 0.2 * torch.randn_like(p)
        elif "lstm" in name:
            p *= 1.7
    net.classifier.weight *= 12

# Three voices (harmonic sounds of different pitch and colour) that take turns, with a silence and an overlap.
rate, t = 16_000, torch.arange(16_000 * 23) / 16_000
def voice(pitch, colour, wobble):
    phase = 2 * math.pi * torch.cumsum(pitch * (1 + 0.03 * torch.sin(2 * math.pi * wobble * t)), 0) / rate
    tones = sum(torch.sin(k * phase) * math.exp(-abs(k * pitch - colour) / 900) for k in range(1, 20))
    return tones * (0.6 + 0.4 * torch.sin(2 * math.pi * 3.1 * t))
def during(*spans):
    return sum(((t >= a) & (t < b)).float() for a, b in spans)
audio = 0.05 * (voice(110, 600, 2.0) * during((0.5, 5.2), (12, 15), (19.5, 22)) + voice(190, 1500, 3.1) * during((5.6, 9.4), (14, 18))
                + voice(260, 2600, 4.3) * during((9.9, 11.7), (18.2, 20.3))) + 0.002 * torch.randn(len(t))
soundfile.write(os.path.join(here, "audio.flac"), audio.numpy(), rate, subtype="PCM_16")
audio = torch.from_numpy(soundfile.read(os.path.join(here, "audio.flac"), dtype="float32")[0])
window = audio[: 10 * rate]
with torch.no_grad():
    raw = {}
    handle = net.classifier.register_forward_hook(lambda m, i, o: raw.update(o=o))
    net(audio[None, None, : 16 * rate])
    net.classifier.bias -= raw["o"][0].mean(0)  # so that every class gets its turn
    # ... and one speaker alone the most.
    net.classifier.bias += torch.tensor([0.0, 0.1, 0.1, 0.1, -0.1, -0.1, -0.1])
    handle.remove()
    scores = net(window[None, None])
golden["segmentation"] = scores[0]
print("classes used", torch.bincount(scores[0].argmax(-1), minlength=7).tolist())

# Embedding.
res = WeSpeakerResNet34().eval()
res.resnet = ResNet(BasicBlock, [2, 1, 1, 1], m_channels=4, feat_dim=80, embed_dim=160, pooling_func="TSTP", two_emb_layer=False).eval()
with torch.no_grad():
    for name, p in res.named_parameters():
        if "bn" in name or "shortcut.1" in name:
            p += 0.2 * torch.randn_like(p)
    for name, b in res.named_buffers():
        if name.endswith("running_mean"): b.copy_(0.2 * torch.randn_like(b))
        if name.endswith("running_var"): b.copy_(0.5 + torch.rand_like(b))
    fbank = res.compute_fbank(window[None, None])
    masks = torch.stack([(scores[0].argmax(-1) == k).float() for k in (1, 2, 4)])
    masks[0, 100:300] = 1.0; masks[1, 250:] = 1.0; masks[2, 40:60] = 1.0
    # Vectors spread around zero, as those of a trained network do.
    windows = [audio[None, None, at * rate : (at + 10) * rate] for at in range(14)]
    alone = [(net(w)[0].argmax(-1) == k).float()[None] for w in windows for k in (1, 2, 3)]
    spread = torch.cat([res(windows[i // 3], weights=mask) for i, mask in enumerate(alone)])
    res.resnet.seg_1.bias -= spread.mean(0)
    golden["embedding"] = res(window[None, None])[0]
    golden["masked_embeddings"] = torch.cat([res(window[None, None], weights=w[None]) for w in masks])
golden["fbank"], golden["masks"] = fbank[0], masks
# The same in 64 bits: in 32, rounding in the Fourier transform is seen in bands without sound.
exact = kaldi.fbank(window[None].double() * 32768, num_mel_bins=80, frame_length=25, frame_shift=10, dither=0.0,
                    sample_frequency=rate, window_type="hamming", use_energy=False)
golden["fbank_64"] = (exact - exact.mean(0)).float()

# PLDA and VBx, on vectors of four speakers.
rng = np.random.default_rng(5)
lda, _ = np.linalg.qr(rng.normal(size=(160, 128)))
np.savez(f"{model}/plda/xvec_transform.npz", mean1=0.002 * rng.normal(size=160), mean2=0.1 * rng.normal(size=128), lda=lda)
np.savez(f"{model}/plda/plda.npz", mu=0.05 * rng.normal(size=128), tr=np.eye(128) + 0.1 * rng.normal(size=(128, 128)), psi=np.sort(rng.gamma(1.0, 1.5, size=128)))
plda = PLDA(f"{model}/plda/xvec_transform.npz", f"{model}/plda/plda.npz")
centres = rng.normal(size=(4, 160))
who = np.repeat(np.arange(4), [40, 25, 12, 5])
vectors = (centres[who] + 0.55 * rng.normal(size=(len(who), 160))).astype(np.float32)
normed = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
tree = linkage(normed, method="centroid", metric="euclidean")
for threshold in (0.5, 0.6, 0.8):
    golden[f"clusters_{threshold}"] = torch.from_numpy(fcluster(tree, threshold, criterion="distance") - 1)
start = np.unique(fcluster(tree, 0.6, criterion="distance") - 1, return_inverse=True)[1]
features = plda(vectors)
gamma, pi = cluster_vbx(start, features, plda.phi, Fa=0.07, Fb=0.8, maxIters=20)
print("clusters", start.max() + 1, "kept", int((pi > 1e-7).sum()), pi)
for name, a in dict(vectors=vectors, tree=tree, features=features, phi=plda.phi, gamma=gamma, pi=pi).items():
    golden[f"vbx_{name}"] = torch.from_numpy(np.ascontiguousarray(a))

# Checkpoints as pyannote saves them.
res.specifications = Specifications(problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0)
for name, network in (("segmentation", net), ("embedding", res)):
    checkpoint = {"state_dict": network.state_dict(), "epoch": 19, "global_step": 1000, "hyper_parameters": dict(network.hparams),
                  "pytorch-lightning_version": "2.1.1"}
    network.on_save_checkpoint(checkpoint)
    torch.save(checkpoint, f"{model}/{name}/pytorch_model.bin")

# The whole pipeline, with the number of speakers found, given and bounded.
pipeline = SpeakerDiarization(segmentation=net, embedding=res, plda=plda, embedding_exclude_overlap=True,
                              segmentation_batch_size=4, embedding_batch_size=8)
pipeline.instantiate({"segmentation": {"min_duration_off": 0.0}, "clustering": {"threshold": 0.6, "Fa": 0.07, "Fb": 0.8}})
seen = {}
def hook(name, artefact, completed=None, **_):
    if artefact is not None and completed is None:
        seen[name] = artefact if isinstance(artefact, np.ndarray) else artefact.data
def turns(annotation):
    return [[round(s.start, 6), round(s.end, 6), label] for s, _, label in annotation.itertracks(yield_label=True)]
results = []
for asked in ({}, {"num_speakers": 1}, {"num_speakers": 2}, {"num_speakers": 3}, {"min_speakers": 3}, {"max_speakers": 1}):
    result = pipeline({"waveform": audio[None], "sample_rate": rate, "uri": "golden"}, hook=hook, **asked)
    found = turns(result.speaker_diarization)
    results.append({"asked": asked, "turns": found, "exclusive": turns(result.exclusive_speaker_diarization)})
    print(asked, len(found), "turns of", sorted({label for _, _, label in found}))
    if not asked:
        for name in ("segmentation", "speaker_counting", "embeddings"):
            golden[f"pipeline.{name}"] = torch.from_numpy(np.ascontiguousarray(seen[name]).astype(np.float32))
json.dump(results, open(f"{here}/turns.json", "w"), indent=0)
save_file({name: value.contiguous() for name, value in golden.items()}, f"{here}/golden.safetensors")
