"""CSI migration: in-tree volumes, as the CSI drivers that replace the in-tree plugins know them.

Kubernetes migrated its in-tree disks to CSI drivers but still reads the old objects. A scheduler needs three facts: the
driver, the volume handle (to count attached volumes), and the volume's topology in the driver's terms (to check the
node affinity of a volume on migrated nodes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from stowplan.objects.pod_parts import Volume
from stowplan.objects.selectors import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from stowplan.objects.storage import CSISource, PersistentVolume, VolumeSpec

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE_SEPARATOR = "__"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_UNSPECIFIED = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*")


class InTree(msgspec.Struct, frozen=True):
    """An in-tree volume plugin: the field of its volumes, its name, and the CSI driver that replaces it.

    `migrated`: if kube-scheduler treats the plugin as migrated. `zone_key` is the driver's topology key for zones; ""
    if the driver does not change a volume's topology.
    """

    field: str
    name: str
    driver: str
    zone_key: str = ""
    migrated: bool = True


GCE = InTree("gce_persistent_disk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
EBS = InTree("aws_elastic_block_store", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
CINDER = InTree("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone")
AZURE_DISK = InTree("azure_disk", "kubernetes.io/azure-disk", "disk.csi.azure.com")
PORTWORX = InTree("portworx_volume", "kubernetes.io/portworx-volume", "pxd.portworx.com")
AZURE_FILE = InTree("azure_file", "kubernetes.io/azure-file", "file.csi.azure.com", migrated=False)
VSPHERE = InTree("vsphere_volume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", migrated=False)

IN_TREE = {kind.name: kind for kind in (GCE, EBS, CINDER, AZURE_DISK, PORTWORX, AZURE_FILE, VSPHERE)}


def kind_of(source: Volume | VolumeSpec) -> InTree | None:
    """Return the in-tree plugin of an inline or persistent volume; None if it has none."""
    return next((kind for kind in IN_TREE.values() if getattr(source, kind.field) is not None), None)


# -- handles


def migrated_source(kind: InTree, source: Volume | VolumeSpec, labels: Mapping[str, str]) -> CSISource | str:
    """Return driver and handle of a volume, or a text why it has none. `labels` are those of the PersistentVolume."""
    disk = getattr(source, kind.field)
    if kind is GCE:
        return _gce(disk.pd_name, labels)
    if kind is EBS:
        return _ebs(disk.volume_id)
    if kind is AZURE_DISK:
        if disk.kind is not None and disk.kind.casefold() != "managed":
            return f"kind({disk.kind}) is not supported in csi migration"
        return CSISource(kind.driver, disk.disk_uri)
    return CSISource(kind.driver, disk.volume_id)


def _gce(disk: str, labels: Mapping[str, str]) -> CSISource | str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_SEPARATOR)
    odd = [zone for zone in zones if zone.count("-") != 2]
    regions = sorted({zone.rpartition("-")[0] for zone in zones})
    if len(zones) == 1:
        place = f"zones/{zones[0] or _UNSPECIFIED}"
    elif odd:
        expected = "zone in unexpected format, expected: {locale}-{region}-{zone}"
        return f"failed to get region from zones: {expected}, got: {odd[0]}"
    elif len(regions) > 1:
        found = " ".join(f"{region}:{{}}" for region in regions)
        return f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{found}]"
    else:
        place = f"regions/{regions[0]}"
    return CSISource(GCE.driver, f"projects/{_UNSPECIFIED}/{place}/disks/{disk}")


def _ebs(volume_id: str) -> CSISource | str:
    """An id may be a URL, aws://zone/vol-1; its last part is the id of the EBS volume."""
    if volume_id.startswith("aws://"):
        path = unquote(urlsplit(volume_id).path).strip("/")
        if not _EBS_VOLUME.fullmatch(path):
            return f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        volume_id = path
    return CSISource(EBS.driver, volume_id)


# -- topology


def migrated_affinity(kind: InTree, volume: PersistentVolume) -> NodeSelector | None:
    """Return a volume's node affinity in the driver's terms: with its zone key, and without the beta region label."""
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if not kind.zone_key:
        return required
    zone_label, region_label = _topology_labels(required, volume.labels)
    if _values(required, zone_label):
        required = _renamed(required, zone_label, kind.zone_key)
    elif zone_label in volume.labels:
        required = _with_zones(required, kind.zone_key, volume.labels[zone_label].split(ZONE_SEPARATOR))
    if region_label == BETA_REGION and _values(required, BETA_REGION):
        required = _renamed(required, BETA_REGION, REGION)
    return required


def _topology_labels(required: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region labels that a volume uses: first of its affinity, then of its labels; then beta."""
    asked = {expression.key for term in _terms(required) for expression in term.match_expressions}
    for keys in (asked, labels.keys()):
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(required: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return () if required is None else required.node_selector_terms


def _values(required: NodeSelector | None, key: str) -> set[str]:
    expressions = (expression for term in _terms(required) for expression in term.match_expressions)
    return {value for expression in expressions if expression.key == key for value in expression.values}


def _renamed(required: NodeSelector | None, old: str, new: str) -> NodeSelector:
    def renamed(expression: LabelSelectorRequirement) -> LabelSelectorRequirement:
        return msgspec.structs.replace(expression, key=new) if expression.key == old else expression

    terms = (
        msgspec.structs.replace(term, match_expressions=tuple(map(renamed, term.match_expressions)))
        for term in _terms(required)
    )
    return NodeSelector(tuple(terms))


def _with_zones(required: NodeSelector | None, key: str, zones: Iterable[str]) -> NodeSelector | None:
    """Return the terms with these zones added to each; without terms, one term with these zones."""
    named = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not named:
        return required
    added = LabelSelectorRequirement(key, "In", named)
    terms = _terms(required) or (NodeSelectorTerm(),)
    return NodeSelector(
        tuple(msgspec.structs.replace(term, match_expressions=(*term.match_expressions, added)) for term in terms)
    )
