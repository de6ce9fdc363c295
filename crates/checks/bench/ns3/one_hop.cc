// Stations of 802.11b that send UDP to one receiver in ns-3, for crates/checks/bench/src/ns3/setting.rs:
//
//   one_hop stations=7.2:0,0:7.2 kbps=8000 rts=0 sense_w=5.011872e-12 reception=threshold from=2 seconds=20 seed=1 run=0
//
// The receiver stands at 0:0. The program prints how many packets of each station arrived after `from`.
//
// What is set, and where the value comes from:
//   slot 20 us, SIFS 10 us, DIFS 50 us, CW 31 to 1023   ns-3's for WIFI_STANDARD_80211b, as in IEEE 802.11-2016, table 15-5
//   long preamble 144 us + PLCP header 48 us            set; IEEE 802.11-2016, 15.2.2
//   data 11 Mbit/s; RTS, CTS, ACK 1 Mbit/s              DataMode, ControlMode, and the only basic rate
//   RTS 20 B, CTS and ACK 14 B, data 28 B of MAC        IEEE 802.11-2016, 9.3
//   EIFS 364 us                                         ns-3's: SIFS + ACK at 1 Mbit/s + DIFS
//   LLC 8 B, IP 20 B, UDP 8 B, user data 984 B          1,020 bytes, as a packet of Airlane with its source header
//   7 tries without RTS, 4 after CTS                    MaxSsrc, MaxSlrc; ns-3 does not count failed RTS against either
//   queue of 100 packets, no lifetime                   WifiMacQueue; Airlane's and ns-2's limit
//   24.5 dBm, 2.472 GHz, two-ray ground, 1.5 m          ns-2's and Airlane's (crates/world/wifi/src/place.rs)
//   decoded from 3.652e-10 W on, sensed from sense_w    MinimumRssi; RxSensitivity and CcaEdThreshold
//
// Two ways to receive:
//   own        ns-3's defaults: a preamble is found at an SINR of 4 dB or more, then the DSSS error model decides
//   threshold  ns-2's and Airlane's rule: the strongest preamble is always found, and its frame survives if each frame that
//              overlaps it is 10 dB weaker

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include "common.h"

using namespace ns3;

static const double kSentDbm = 24.49941;
static const double kDecodedW = 3.652e-10;
static const double kCapture = 10.0;

// A frame on the air, and all of the last milliseconds.
struct OnAir {
  Ptr<WifiPhy> from;
  Time start, end;
};
static std::vector<OnAir> air;

// Loses a frame that ends at this receiver if anything that overlapped it was not ten times weaker. ns-3's own model has
// judged it before, and a frame that is lost here is an error at its end, which EIFS follows. An ErrorRateModel cannot
// hold this rule: ns-3 decides about DSSS before it asks one.
class CaptureRule : public ErrorModel {
 public:
  CaptureRule(Ptr<WifiPhy> at, Ptr<PropagationLossModel> loss, Ptr<PropagationDelayModel> delay)
      : m_at(at), m_loss(loss), m_delay(delay) {}

 private:
  bool DoCorrupt(Ptr<Packet>) override {
    const OnAir *frame = nullptr;
    double power = 0;
    for (const auto &one : air) {
      if (one.from == m_at || one.end + Delay(one) != Simulator::Now() || PowerW(one) <= power) continue;
      frame = &one;
      power = PowerW(one);
    }
    NS_ABORT_MSG_IF(!frame, "a frame ended that nobody sent");
    for (const auto &one : air) {
      const bool overlaps = one.start + Delay(one) < Simulator::Now() && one.end + Delay(one) > frame->start + Delay(*frame);
      if (&one == frame || one.from == m_at || !overlaps) continue;
      if (WToDbm(PowerW(one)) >= m_at->GetRxSensitivity() && PowerW(one) * kCapture > power) return true;
    }
    return false;
  }
  void DoReset() override {}
  Time Delay(const OnAir &one) const { return m_delay->GetDelay(one.from->GetMobility(), m_at->GetMobility()); }
  double PowerW(const OnAir &one) const {
    return DbmToW(m_loss->CalcRxPower(kSentDbm, one.from->GetMobility(), m_at->GetMobility()));
  }

  Ptr<WifiPhy> m_at;
  Ptr<PropagationLossModel> m_loss;
  Ptr<PropagationDelayModel> m_delay;
};

int main(int argc, char **argv) {
  Options options(argc, argv);
  const double from = options.Number("from"), seconds = options.Number("seconds");
  const bool own = options.Text("reception") == "own", rts = options.Number("rts");
  SetTriesAndQueue(7, rts ? 4 : 7);
  Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(rts ? 0 : 3000));

  auto positions = CreateObject<ListPositionAllocator>();
  positions->Add(Vector(0, 0, 1.5));
  int count = 1;
  for (const auto &station : Split(options.Text("stations"), ',')) {
    auto at = Split(station, ':');
    positions->Add(Vector(std::stod(at[0]), std::stod(at[1]), 1.5));
    count++;
  }
  NodeContainer nodes;
  nodes.Create(count);
  MobilityHelper mobility;
  mobility.SetPositionAllocator(positions);
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(nodes);

  auto loss = CreateObject<TwoRayGroundPropagationLossModel>();
  loss->SetFrequency(2.472e9);
  auto delay = CreateObject<ConstantSpeedPropagationDelayModel>();
  auto channel = CreateObject<YansWifiChannel>();
  channel->SetPropagationLossModel(loss);
  channel->SetPropagationDelayModel(delay);
  const double senseDbm = 10 * std::log10(options.Number("sense_w") * 1e3);
  YansWifiPhyHelper phy;
  phy.SetChannel(channel);
  phy.Set("TxPowerStart", DoubleValue(kSentDbm));
  phy.Set("TxPowerEnd", DoubleValue(kSentDbm));
  phy.Set("RxSensitivity", DoubleValue(senseDbm));
  phy.Set("CcaEdThreshold", DoubleValue(senseDbm));
  phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi",
                                DoubleValue(10 * std::log10(kDecodedW * 1e3)), "Threshold",
                                DoubleValue(own ? 4.0 : -100.0));
  NetDeviceContainer devices = InstallWifi(phy, nodes, "DsssRate1Mbps", false);

  for (uint32_t i = 0; !own && i < devices.GetN(); i++) {
    auto station = DynamicCast<WifiNetDevice>(devices.Get(i))->GetPhy();
    station->SetPostReceptionErrorModel(CreateObject<CaptureRule>(station, loss, delay));
    station->TraceConnectWithoutContext(
        "PhyTxPsduBegin",
        Callback<void, WifiConstPsduMap, WifiTxVector, double>([station](WifiConstPsduMap sent, WifiTxVector how, double) {
          const Time now = Simulator::Now();
          air.erase(std::remove_if(air.begin(), air.end(), [&](auto &one) { return one.end + MilliSeconds(5) < now; }),
                    air.end());
          air.push_back({station, now, now + WifiPhy::CalculateTxDuration(sent, how, station->GetPhyBand())});
        }));
  }

  InternetStackHelper stack;
  stack.Install(nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  auto interfaces = addresses.Assign(devices);
  TrafficControlHelper control;
  control.Uninstall(devices);
  NeighborCacheHelper neighbours;
  neighbours.PopulateNeighborCache();

  const uint64_t user = 984;
  std::vector<uint64_t> arrived(count - 1);
  for (int i = 1; i < count; i++) {
    const uint16_t port = 5000 + i;
    OnOffHelper flow("ns3::UdpSocketFactory", InetSocketAddress(interfaces.GetAddress(0), port));
    // `kbps` counts 1,000 bytes a packet.
    flow.SetConstantRate(DataRate(uint64_t(options.Number("kbps") * user)), user);
    flow.Install(nodes.Get(i)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    auto app = sink.Install(nodes.Get(0));
    app.Get(0)->TraceConnectWithoutContext(
        "Rx", Callback<void, Ptr<const Packet>, const Address &>([&arrived, i, from](Ptr<const Packet>, const Address &) {
          if (Simulator::Now() >= Seconds(from)) arrived[i - 1]++;
        }));
  }

  Simulator::Stop(Seconds(from + seconds));
  Simulator::Run();
  for (auto packets : arrived) std::cout << "packets=" << packets << "\n";
  Simulator::Destroy();
}
