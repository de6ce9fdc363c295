// Stations of 802.11b in ns-3, for crates/checks/bench/src/mesh.rs: UDP flows, each faster than the channel, over fixed
// routes.
//
//   mesh spacing=170 columns=4 nodes=16 routes=1-6-11-14,9-12 seconds=60 seed=1999 run=0
//
// It prints how many packets of each flow arrived. LLC, IP and UDP take 36 of the 1,020 bytes that a packet of Airlane
// has on the air, headers included. The two-ray model and its thresholds are ns-2's: a frame is decoded from -64.4 dBm
// on (250 m) and sensed from -83 dBm on (730 m); overlapping frames are subject to ns-3's own SINR.

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

int main(int argc, char **argv) {
  Options options(argc, argv);
  const int count = options.Number("nodes"), columns = options.Number("columns");
  const double spacing = options.Number("spacing"), seconds = options.Number("seconds");
  SetTriesAndQueue(7, 7);

  NodeContainer nodes;
  nodes.Create(count);
  auto positions = CreateObject<ListPositionAllocator>();
  for (int i = 0; i < count; i++)
    positions->Add(Vector((i % columns) * spacing, (i / columns) * spacing, 1.5));
  MobilityHelper mobility;
  mobility.SetPositionAllocator(positions);
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(nodes);

  YansWifiChannelHelper channel;
  channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(2.472e9));
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  YansWifiPhyHelper phy;
  phy.SetChannel(channel.Create());
  phy.Set("TxPowerStart", DoubleValue(24.5));
  phy.Set("TxPowerEnd", DoubleValue(24.5));
  phy.Set("RxSensitivity", DoubleValue(-83));
  phy.Set("CcaEdThreshold", DoubleValue(-83));
  phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(-64.4));
  NetDeviceContainer devices = InstallWifi(phy, nodes, "DsssRate2Mbps", true);

  InternetStackHelper stack;
  Ipv4StaticRoutingHelper routing;
  stack.SetRoutingHelper(routing);
  stack.Install(nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  auto interfaces = addresses.Assign(devices);
  TrafficControlHelper control;
  control.Uninstall(devices);
  NeighborCacheHelper neighbours;
  neighbours.PopulateNeighborCache();

  std::vector<Ptr<PacketSink>> sinks;
  uint16_t port = 5000;
  for (const auto &route : Split(options.Text("routes"), ',')) {
    auto hops = Split(route, '-');
    const int source = std::stoi(hops.front()), end = std::stoi(hops.back());
    auto to = interfaces.GetAddress(end);
    for (size_t i = 0; i + 2 < hops.size(); i++) {
      auto table = routing.GetStaticRouting(nodes.Get(std::stoi(hops[i]))->GetObject<Ipv4>());
      table->AddHostRouteTo(to, interfaces.GetAddress(std::stoi(hops[i + 1])), 1);
    }
    OnOffHelper flow("ns3::UdpSocketFactory", InetSocketAddress(to, port));
    flow.SetConstantRate(DataRate("7872kbps"), 984);
    flow.Install(nodes.Get(source)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port++));
    auto app = sink.Install(nodes.Get(end));
    sinks.push_back(DynamicCast<PacketSink>(app.Get(0)));
  }

  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  for (const auto &sink : sinks) std::cout << "packets=" << sink->GetTotalRx() / 984 << "\n";
  Simulator::Destroy();
}
