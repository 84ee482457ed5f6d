#!/usr/bin/perl
# Holds the cases of `kvref spec --cases FILE` that need nothing but the text protocol, and prints TAP.
# Usage: perl literal_cases.pl FILE HOST PORT
use strict; use warnings;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;

my ($file, $host, $port) = @ARGV;
open my $in, '<:raw', $file or die "$file: $!\n";
my $suite = decode_json(do { local $/; <$in> });
my %hole = (cas => '\d+', number => '\d+', text => '[^\r\n]*', stats => '(?:STAT [^\r\n]+\r\n)*');
my (%link, %caught);

sub link_to { $link{$_[0]} //= IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) || die "$host:$port: $!\n" }
sub known { my $it = $caught{$_[0]{recall}}; $_[0]{length} ? length $it : $it }
sub written { join '', map { ref $_ ? known($_) : $_ } @{$_[0]} }

sub fits {    # whether the answer is an allowed one; remembers what its holes caught
    my ($allowed, $got) = @_;
    my @holes = grep { ref $_ && $_->{hole} } @$allowed;
    my $pattern = join '', map { ref $_ && $_->{hole} ? "($hole{$_->{hole}})" : quotemeta written([$_]) } @$allowed;
    my @values = $got =~ /\A$pattern\z/s or return 0;
    my %here;
    for my $number (grep { $holes[$_]{name} } 0 .. $#holes) {
        my ($name, $value) = ($holes[$number]{name}, $values[$number]);
        return 0 if defined $here{$name} && $here{$name} ne $value;
        return 0 if $holes[$number]{new} && !defined $here{$name} && grep { $_ eq $value } values %caught, values %here;
        $here{$name} = $value;
    }
    %caught = (%caught, %here);
    return 1;
}

sub answer {    # what came, and whether it is allowed
    my ($step, $socket, $got, $until) = (@_, '', time + $_[0]{patience});
    my $wait = IO::Select->new($socket);
    my $judged = sub { my ($some) = grep { fits($_, $got) } @{$step->{allow}}; return ($got, !!$some) };
    until ($step->{closes} || $step->{quiet}) {
        my ($text, $kept) = $judged->();
        return ($text, $kept) if $kept || time > $until;
        $wait->can_read(0.3) && !sysread($socket, $got, 65536, length $got) && return $judged->();
    }
    while ($wait->can_read($step->{quiet} ? 0.3 : $step->{patience})) { sysread $socket, $got, 65536, length $got or last }
    return $judged->();
}

for my $case (@{$suite->{cases}}) {
    (%link, %caught) = ();
    my ($why, @steps) = ('', map { $_->{send} // $_ } @{$case->{steps}});
    if ((grep { $_ ne 'flush' } @{$case->{needs}}) || grep { !$_->{packets} } @steps) { print "ok $case->{case} # SKIP\n"; next }
    syswrite link_to(''), "version\r\n";
    ($caught{version}) = $link{''}->getline =~ /^VERSION (.*)\r\n/;
    for my $step (@steps) {
        my ($got, $kept, $until) = ('', 0, time + ($step->{within} // 0));
        do {    # sent again until the answer is allowed, where it may come only some time later
            syswrite link_to($step->{on}), written($_) for @{$step->{packets}};
            ($got, $kept) = answer($step, $link{$step->{on}});
        } until $kept || time >= $until;
        $why ||= encode_json([map { written($_) } @{$step->{packets}}]) . ' got ' . encode_json([$got]) unless $kept;
    }
    print $why ? "not ok $case->{case} @{$case->{requirements}}: $why\n" : "ok $case->{case}\n";
}
