//! The verbs of live links: those that start, change and inspect them.

use clap::Subcommand;

#[cfg(feature = "screen")]
use super::TopArgs;
use super::{
    DaemonArgs, FlowsArgs, ImportVerb, JournalVerb, KeygenArgs, PullArgs, RecordArgs, RecvArgs,
    RelayArgs, ReloadArgs, RunningArgs, SendArgs, ServiceVerb, SetRateArgs, SetupArgs, StatusArgs,
    TestArgs, UpArgs,
};
use super::{measure, node, relay, service, setup, ship};

/// The verbs that need the feature `live`.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Bring one end of a link up and keep it up until SIGTERM or Ctrl-C
    ///
    /// Creates the TUN device of FILE with its addresses and routes and carries its packets over
    /// the underlay, UDP or an Ethernet interface, to the peer, or to several who share the link.
    /// Needs root, or CAP_NET_ADMIN, and CAP_NET_RAW for Ethernet; once it is up, it keeps CAP_NET_ADMIN
    /// alone. At the end the device is
    /// removed and the counters are printed.
    #[command(after_help = node::UP_EXAMPLES)]
    Up(UpArgs),
    /// Make the files of both ends of a new link, or of a base and its stations, with keys
    ///
    /// Asks four questions, or takes four options, and writes a file and a key for each end, which only their owner
    /// may read. With --station this end is a base, and each station gets files of its own. Files that exist are
    /// kept unless --force is given.
    #[command(after_help = setup::SETUP_EXAMPLES)]
    Setup(SetupArgs),
    /// Make a key for one end of a secured link
    ///
    /// Writes a new private key to FILE, which only its owner may read, and prints the public key,
    /// which goes into the other end's file as `peer-key`.
    #[command(after_help = node::KEYGEN_EXAMPLES)]
    Keygen(KeygenArgs),
    /// Emulate a lossy link between two interfaces until SIGTERM or Ctrl-C
    ///
    /// Carries Ethernet frames between the two interfaces of FILE at the stated rate, delay and
    /// queue and loses some of them. Needs root, or CAP_NET_RAW. At the end it prints the requested
    /// and the achieved figures.
    #[command(after_help = node::AIR_EXAMPLES)]
    Air(RunningArgs),
    /// Split TCP connections: terminate each here and relay it over a second one
    ///
    /// Runs until SIGTERM or Ctrl-C. Data that arrives on one is sent on the other, so each side of the relay repairs its own
    /// losses over its own round trip. The source receives acknowledgments of data that has not
    /// reached the destination yet. One connection holds at most twice the pool; the end of one
    /// direction is relayed after its last byte, and a side that breaks off resets the other at
    /// once. At the end all are reset and the counters are printed; SIGUSR1 logs them.
    #[command(after_help = relay::EXAMPLES)]
    Relay(RelayArgs),
    /// Send files and folders to another host, over a path that loses packets
    ///
    /// `airlane recv` there prints a ticket, which is all that this end needs. All data is
    /// encrypted, and sent as fast as the path carries it: the rate follows what arrives, and
    /// losses that do not grow with the rate have no effect on it. Every file is verified by its
    /// BLAKE3 hash. Started again with the same files after an interruption, it resumes. Source:
    /// CLAP-final, Gopal 2007, section 3.2.
    #[command(after_help = ship::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive what another host sends with `airlane send`
    ///
    /// Prints a ticket for the other end and waits. Anyone with the ticket may put files into
    /// FOLDER, and nowhere else, one sender at a time. Incomplete files are kept in .airlane-parts
    /// until all have arrived.
    #[command(after_help = ship::RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Check whether a link can come up, and say what to do where it cannot
    ///
    /// Tries privileges, keys, interface, port, route and MTU as `airlane up` does and undoes them
    /// again; a peer with keys is asked for a handshake. For a running link it gives the state of
    /// each session, and why one has never come up.
    #[command(after_help = node::DOCTOR_EXAMPLES)]
    Doctor(DaemonArgs),
    /// Apply the changes in its file to a running link
    ///
    /// Keys, peers, their addresses, rates, services and classes change at once, and connections
    /// through unchanged links are not interrupted. SIGHUP to `airlane up` does the same with the
    /// file that it was started with. If a change needs a restart, it is named and nothing is
    /// changed.
    #[command(after_help = node::RELOAD_EXAMPLES)]
    Reload(ReloadArgs),
    /// Make a live file from the configuration of another tunnel
    #[command(subcommand, arg_required_else_help = true)]
    Import(ImportVerb),
    /// Change the rate of a running link
    ///
    /// The new rate applies at once, without a new session and without losses. The file stays as it
    /// is; write the rate there, too, if it is to outlast a reload.
    #[command(after_help = service::SET_EXAMPLES)]
    Set(SetRateArgs),
    /// Change the services of a running link
    ///
    /// Connections through the other services are not interrupted. A service is used once both ends
    /// have it; until then, and once one end has removed it, its packets are treated as those
    /// without a class. The file stays as it is; write changes there, too, if they are to outlast a
    /// restart.
    #[command(subcommand, arg_required_else_help = true)]
    Service(ServiceVerb),
    /// Show what each service of a running link has carried, repaired and lost
    #[command(after_help = node::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Show which flows a running link knows, which service each gets, and why
    ///
    /// Without rules a link classifies flows by their behaviour. Each flow is shown with the rule
    /// that would keep it in its service, as a file would have it. At most 150 flows are shown,
    /// first those that run, then those with the most bytes. Only root and the user of the link may
    /// ask.
    #[command(after_help = node::FLOWS_EXAMPLES)]
    Flows(FlowsArgs),
    /// Show how fast a flow to a host may send
    ///
    /// The flow's service reports this as a MAC would: how much it took for sending in the last 100
    /// ms, how often its queue ran empty, and how much room the queue has. A probe along the path
    /// collects the minimum. `airlane send` sends at this rate. Where classes ask how a flow
    /// behaves, this is the offer to a new flow. Source: CLF, Gopal 2007, section 3.3.
    #[command(after_help = node::PULL_EXAMPLES)]
    Pull(PullArgs),
    /// Watch a running link on the whole screen
    ///
    /// Per service and direction: packets, repairs, their cost, losses, round trip, queue and
    /// rates, once a second. Of several peers each has a line, and the arrow keys choose whose
    /// services are shown. f shows flows, with their services and the reasons, in place of the
    /// rates. q, Esc or Ctrl-C ends.
    #[cfg(feature = "screen")]
    #[command(after_help = node::TOP_EXAMPLES)]
    Top(TopArgs),
    /// Measure what a file, web pages and voice get below a link and through it
    ///
    /// First run `airlane test --serve` at the other end. Then each application runs alone, and all
    /// of them at once: before, over the plain path to the peer, and after, through the link. The
    /// other end sends the file and the pages; voice goes both ways. Other traffic on the link
    /// during the test affects the figures. The clocks of the ends need not agree.
    ///
    /// PEER is the link's name, or the address of the other end in the link. With an address that no link
    /// leads to, the plain path alone can be measured: `airlane test --serve ADDRESS` there, and here
    /// `airlane test ADDRESS --before`.
    #[command(after_help = measure::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Record the fate of each frame of a running link
    ///
    /// Writes a trace to OUT until Ctrl-C: each frame sent, with its size and the bytes queued
    /// after it, each frame received, and those lost, by the gaps in their numbers. Recording sends
    /// nothing itself. Record both ends at the same time and join the two (`airlane trace join`) to
    /// know both directions and the delays; one recording has the losses on the way to its end. The
    /// link must be secured: the frames of other links are not all numbered.
    #[command(after_help = measure::RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Replay what a port did, from its journal
    #[command(subcommand, arg_required_else_help = true)]
    Journal(JournalVerb),
}
