// What our programs for ns-3 share: options `key=value`, and stations of 802.11b whose only basic rate is that of answers.

#pragma once

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/wifi-module.h"

inline std::vector<std::string> Split(const std::string &text, char by) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

class Options {
 public:
  // `seed` and `run` take effect at once.
  Options(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
      auto pair = Split(argv[i], '=');
      if (pair.size() == 2) m_values[pair[0]] = pair[1];
    }
    ns3::RngSeedManager::SetSeed(Number("seed"));
    ns3::RngSeedManager::SetRun(Number("run") + 1);
  }
  const std::string &Text(const char *key) { return m_values[key]; }
  double Number(const char *key) { return std::atof(m_values[key].c_str()); }

 private:
  std::map<std::string, std::string> m_values;
};

// For what is installed afterwards: tries of short and of long frames, and a queue of 100 packets without a lifetime.
inline void SetTriesAndQueue(int shortFrames, int longFrames) {
  using namespace ns3;
  Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(shortFrames));
  Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(longFrames));
  Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("100p"));
  Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
}

// 802.11b ad hoc with 11 Mbit/s for data, and `basic` for the rest. ns-3's ad hoc stations answer at the highest mandatory
// rate, 11 Mbit/s, unless they know each other before they hear each other, and there is one basic rate.
inline ns3::NetDeviceContainer InstallWifi(const ns3::YansWifiPhyHelper &phy, const ns3::NodeContainer &nodes,
                                           const std::string &basic, bool shortPreamble) {
  using namespace ns3;
  WifiHelper wifi;
  wifi.SetStandard(WIFI_STANDARD_80211b);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate11Mbps"), "ControlMode",
                               StringValue(basic));
  WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
  NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
  for (uint32_t i = 0; i < devices.GetN(); i++) {
    auto manager = DynamicCast<WifiNetDevice>(devices.Get(i))->GetRemoteStationManager();
    manager->SetShortPreambleEnabled(shortPreamble);
    manager->AddBasicMode(WifiMode(basic));
    for (uint32_t j = 0; j < devices.GetN(); j++) {
      if (i == j) continue;
      const auto other = Mac48Address::ConvertFrom(devices.Get(j)->GetAddress());
      for (const auto &mode : {basic, std::string("DsssRate11Mbps")}) manager->AddSupportedMode(other, WifiMode(mode));
      if (shortPreamble) manager->AddSupportedPhyPreamble(other, true);
      manager->RecordDisassociated(other);
    }
  }
  return devices;
}
